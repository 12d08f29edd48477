// cli/importer.h — imports JSON Lines of jobs batch by batch, so that it is always known which
// lines are enqueued.
//
// What:    lines are checked here, gathered, and sent; a batch is all or nothing. A batch that the
// daemon refuses is sent again line by line, to find the bad line. When an answer is lost, the
// batch is sent again if that is safe: nothing had been sent, or every line has a key and
// on_conflict "fail", so that the existing job is the answer. Batches of such lines overlap: lines
// enqueued beyond a bad one are recognized when the import is resumed.
// Errors:  a bad line is its Status with "line 7: " in front, after everything before it has been
// sent; with keep_going it is reported and counted instead. An unknown outcome names its lines.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/api.h"
#include "cli/batch_sender.h"
#include "cli/patience.h"

namespace delayd::cli {

struct ImportOptions {
  size_t batch_jobs = 500;
  size_t batch_bytes = size_t{8} << 20;
  bool keep_going = false;
  // How many lines precede the first; they count as settled.
  uint64_t skip = 0;
  // How long to wait for a daemon that is away, or for room for one line.
  Millis retry_for = kRetryForDefault;
  // Once it is readable, an answer is awaited only briefly if its lines can safely be sent again;
  // -1: never.
  int give_up_fd = -1;
};

struct ImportCounts {
  uint64_t imported = 0;  // including those that existed
  uint64_t existed = 0;
  // Of those that existed: jobs that will not fire.
  uint64_t finished = 0;
  uint64_t dead = 0;
  uint64_t bad_lines = 0;
  // Every line up to this one is enqueued or was reported as bad; resume after it.
  uint64_t settled_line = 0;
};

class Importer {
 public:
  struct Hooks {
    // Not OK ends the wait and the import.
    std::function<Status(Millis)> sleep;
    std::function<void(const Status&)> bad_line;
    // What is waited for.
    std::function<void(const Status&)> warn;
    // Called for each job once it is acknowledged; an error ends the import.
    std::function<Status(uint64_t line, const protocol::EnqueuedJob& job)> acknowledged;
    // Called after each batch of acknowledged jobs.
    std::function<Status()> batch_done;
  };

  // One connection for each batch that may be under way at a time.
  Importer(std::vector<Api*> lanes, const Clock* clock, const ImportOptions& options, Hooks hooks)
      : sender_(std::move(lanes)),
        options_(options),
        hooks_(std::move(hooks)),
        patience_(clock, options.retry_for, hooks_.sleep, hooks_.warn) {
    counts_.settled_line = options.skip;
  }

  Status AddLine(uint64_t number, std::string_view text);
  // A line that could not even be read.
  Status AddBadLine(uint64_t number, const Status& why);
  // Sends the gathered lines and waits for all answers.
  Status Flush();
  // Waits for the answers to what is under way; the gathered lines are not sent.
  Status SettleAll();

  const ImportCounts& counts() const { return counts_; }

 private:
  struct Line {
    uint64_t number = 0;
    std::string json;
    std::string key;
    bool repeatable = false;  // has a key and on_conflict "fail": sent again, it finds its own job
  };

  using Batch = std::vector<Line>;

  // Starts to send the gathered lines; waits for as many earlier batches as it must.
  Status StartBatch();
  // Waits for the oldest batch under way.
  Status Settle();
  Status Send(const std::vector<Line>& lines);
  Status Conclude(const std::vector<Line>& lines, BatchSender::Answer answer);
  Status SendOneByOne(const std::vector<Line>& lines);
  static std::string BodyOf(const std::vector<Line>& lines);
  Status Record(const std::vector<Line>& lines, std::vector<protocol::EnqueuedJob>& jobs);
  Status Refused(const std::vector<Line>& lines, const Status& why);
  // Skips a bad line; everything before it must be settled.
  Status LeaveOut(uint64_t number, const Status& why);
  // OK: it has slept, try again.
  Status Retry(const std::vector<Line>& lines, const Status& why);

  BatchSender sender_;
  std::deque<Batch> under_way_;
  size_t sent_before_wait_ = 0;  // of those under way: sent before the last wait was over
  ImportOptions options_;
  Hooks hooks_;
  Patience patience_;
  ImportCounts counts_;
  std::vector<Line> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace delayd::cli

// cli/beanstalkd_import.h — drains a running beanstalkd into delayd, and loses no job when either
// side, or this program, dies on the way.
//
// What:    a job is deleted there only after delayd has answered that it is durable. Each has a key
//          made of the source's instance and the job's id there, and stands for that job whatever
//          becomes of it, so a second run finds what the first one had enqueued, done or not, and
//          only deletes it; a source that was started anew is another instance. Ready jobs are
//          reserved in batches, so that no worker of the source gets them meanwhile. Delayed and
//          buried ones are looked at, enqueued and deleted, never reserved: the source would make
//          them ready if we died.
//          Jobs keep tube, priority, time to run, what is left of their delay, and being buried;
//          tubes from which they come, what is left of their pause.
//          What is too large for delayd stays there, as it was. A queue that is full holds up its
//          own tube only. While a quota or a daemon that is away is waited for, no job of the
//          source is held.
// Units:   the source tells what is left in whole seconds, rounded down; a second is added, so that
//          no job is early.
// Errors:  the status of the side that failed; run it again.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "cli/api.h"
#include "cli/patience.h"
#include "cli/set_aside.h"
#include "protocol/beanstalk/client.h"

namespace delayd::cli {

class BeanstalkdImport {
 public:
  // Jobs that are at the source still.
  struct Left {
    uint64_t ready = 0;
    uint64_t delayed = 0;
    uint64_t buried = 0;
    uint64_t reserved = 0;  // in the hands of workers

    uint64_t unreserved() const { return ready + delayed + buried; }

    uint64_t all() const { return unreserved() + reserved; }
  };

  struct Counts {
    uint64_t imported = 0;  // existed ones included
    uint64_t existed = 0;
    uint64_t taken = 0;  // enqueued here, and taken by a worker there before they could be deleted
    uint64_t too_large = 0;
    uint64_t queue_full = 0;  // left there for want of room
    uint64_t undeleted = 0;   // of the last batch: here, at least perhaps, and perhaps there still
    Left left;                // when the last pass was over
  };

  // `going_on` is asked between batches; not OK ends the import there.
  BeanstalkdImport(beanstalk::Client* source,
                   Api* api,
                   std::function<Status(const Counts&)> going_on,
                   Patience patience)
      : source_(source),
        api_(api),
        going_on_(std::move(going_on)),
        patience_(std::move(patience)),
        set_aside_(source) {}

  // Passes over all tubes, until a pass leaves none but reserved jobs or finds none to move.
  Status Run();

  const Counts& counts() const { return counts_; }

  // Of the jobs that are too large.
  std::string TooLarge() const { return set_aside_.Names(); }

  // Whose queues are full: "orders (3 jobs)"; and what delayd said of the last.
  const std::set<std::string>& full() const { return full_texts_; }

  const Status& why_full() const { return why_full_; }

  // Tubes that were paused here because they are there.
  const std::set<std::string>& paused() const { return paused_; }

 private:
  enum class Which : uint8_t { kReady, kDelayed, kBuried };

  // A job of the source, as it is to be here.
  struct Found {
    uint64_t id = 0;
    std::string stats;
    JobSpec spec;
    bool too_large = false;
    bool later = false;  // there is no room for it yet
  };

  Status Begin();
  Status PassUntilDone();
  Status RefuseDelayd();
  Status WatchAllTubes();
  Status Pass();
  Status DrainReady();
  Status PauseAsThere(const std::string& tube);
  Status PauseHere(const std::string& tube, Millis left);
  Status DrainHeads(const std::string& tube, Which which);
  StatusOr<bool> TakeHead(Which which);
  Status Move(std::vector<Found> jobs);
  StatusOr<size_t> EnqueueSome(std::span<Found> jobs, Status* why_later);
  Status EnqueueOne(Found* job);
  Status PutOff(Found* job, const Status& why);
  Status Delete(std::span<const Found> jobs);
  Status GiveBack(std::span<const Found> jobs);
  Status WaitFor(const Status& why);
  Status CountLeft();
  Status CountFull();

  uint64_t moved() const { return counts_.imported - counts_.taken; }

  JobSpec SpecOf(uint64_t id, std::string_view stats, std::string body) const;

  beanstalk::Client* source_;
  Api* api_;
  std::function<Status(const Counts&)> going_on_;
  Patience patience_;
  std::string instance_;
  std::vector<std::string> tubes_;
  SetAside set_aside_;
  std::set<std::string> paused_;
  std::set<std::string> full_;  // tubes that this pass goes around
  Status why_full_;
  std::set<std::string> full_texts_;
  size_t heads_too_large_ = 0;  // one after another
  Counts counts_;
};

}  // namespace delayd::cli

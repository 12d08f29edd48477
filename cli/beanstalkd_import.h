// cli/beanstalkd_import.h — drains a running beanstalkd into delayd, without losing a job if either
// side, or this program, dies on the way.
//
// What:    a job is deleted from the source only after delayd has confirmed that it is durable. Its
//          key is made of the source's instance and the job's id there, and identifies the job
//          whatever becomes of it. So a second run finds the jobs that the first one enqueued, done
//          or not, and only deletes them; a restarted source is another instance. Ready jobs are
//          reserved in batches, so that no worker of the source gets them meanwhile. Delayed and
//          buried jobs are peeked at, enqueued and deleted, never reserved: the source would make
//          them ready if we died.
//          Jobs keep their tube, priority, time to run, remaining delay and buried state; their
//          tubes keep the rest of their pause.
//          A job too large for delayd stays at the source as it was. A full queue holds up only its
//          own tube. While the import waits for a quota or for a daemon that is away, it holds no
//          job of the source.
// Units:   the source tells remaining times in whole seconds, rounded down; a second is added, so
//          that no job is early.
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
  // Jobs still at the source.
  struct Left {
    uint64_t ready = 0;
    uint64_t delayed = 0;
    uint64_t buried = 0;
    uint64_t reserved = 0;  // in the hands of workers

    uint64_t unreserved() const { return ready + delayed + buried; }

    uint64_t all() const { return unreserved() + reserved; }
  };

  struct Counts {
    uint64_t imported = 0;  // including those that existed
    uint64_t existed = 0;
    uint64_t taken = 0;  // enqueued here, but reserved by a worker there before we deleted them
    uint64_t too_large = 0;
    uint64_t queue_full = 0;  // left at the source because their queue is full
    uint64_t undeleted = 0;   // of the last batch: enqueued or perhaps so, and not known deleted
    Left left;                // at the end of the last pass
  };

  // `going_on` is called between batches; not OK ends the import there.
  BeanstalkdImport(beanstalk::Client* source,
                   Api* api,
                   std::function<Status(const Counts&)> going_on,
                   Patience patience)
      : source_(source),
        api_(api),
        going_on_(std::move(going_on)),
        patience_(std::move(patience)),
        set_aside_(source) {}

  // Passes over all tubes until a pass leaves only reserved jobs, or finds none to move.
  Status Run();

  const Counts& counts() const { return counts_; }

  // Names the jobs that are too large.
  std::string TooLarge() const { return set_aside_.Names(); }

  // The tubes whose queues are full, as "orders (3 jobs)"; and what delayd said of the last one.
  const std::set<std::string>& full() const { return full_texts_; }

  const Status& why_full() const { return why_full_; }

  // Tubes paused here because they are paused at the source.
  const std::set<std::string>& paused() const { return paused_; }

 private:
  enum class Which : uint8_t { kReady, kDelayed, kBuried };

  // A job of the source, and what it becomes here.
  struct Found {
    uint64_t id = 0;
    std::string stats;
    JobSpec spec;
    bool too_large = false;
    bool later = false;  // its queue has no room yet
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
  std::set<std::string> full_;  // tubes that this pass skips
  Status why_full_;
  std::set<std::string> full_texts_;
  size_t heads_too_large_ = 0;  // consecutive
  Counts counts_;
};

}  // namespace delayd::cli

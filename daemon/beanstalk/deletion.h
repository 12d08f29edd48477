// daemon/beanstalk/deletion.h — a delete-batch under way: its jobs in order, and the outcome of
// each.
//
// What:    jobs that the connection has reserved are acked and the others cancelled, so a batch
//          takes up to two engine commands. Both are decided in one turn. A job whose time to run
//          is over is acked, in case the engine has not ended its lease yet, and then cancelled, in
//          case it has; a plain delete does the same.
// Errors:  a job that cannot be deleted does not affect the others. If either answer has a status
//          that is not OK, the whole command gets it.
// Threads: one.
// Cost:    O(1) per job.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "daemon/beanstalk/reservations.h"
#include "daemon/engine/command.h"

namespace delayd::beanstalk {

class Deletion {
 public:
  // `taken` is set if the connection had reserved the job.
  void Add(JobId id, const std::optional<Reservations::Taken>& taken);

  // The commands for the engine: at least one, to be executed in this order. Call it once.
  std::vector<engine::Command> TakeCommands();

  // True: this was the last answer.
  bool Take(const engine::Reply& reply);

  const Status& status() const { return status_; }

  // Whether each job was deleted, in order. Call it once.
  std::vector<bool> TakeDeleted();

 private:
  struct Job {
    JobId id{};
    bool is_acked = false;
    bool is_cancelled = false;
  };

  std::vector<Job> jobs_;
  engine::AckMany ack_;
  engine::CancelIds cancel_;
  size_t answers_missing_ = 0;
  Status status_;
  // In the order of the jobs.
  std::vector<LeaseToken> lost_;
  std::vector<JobId> refused_;
};

}  // namespace delayd::beanstalk

// daemon/beanstalk/deletion.h — a delete-batch under way: its jobs in order, and what became of
// each.
//
// What:    the jobs that the connection has reserved are acked, the others cancelled, so that it
//          asks the engine for up to two things. Both are decided in one turn. A job whose time to
//          run is over is acked, since the engine may not have ended its lease yet, and then
//          cancelled, since it may be anybody's by now; a plain delete does the same.
// Errors:  a job that cannot be deleted keeps no other from its end. A status that is not OK in
//          either answer is the whole command's.
// Threads: one.
// Cost:    O(1) for each job.
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
  // `taken`: of a job that is reserved.
  void Add(JobId id, const std::optional<Reservations::Taken>& taken);

  // What is to be asked: at least one, in this order. Once.
  std::vector<engine::Command> TakeCommands();

  // True: this was the last answer.
  bool Take(const engine::Reply& reply);

  const Status& status() const { return status_; }

  // For each job in order. Once.
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

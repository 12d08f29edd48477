// tests/simulation/workload.h — what clients and workers do: sensible things, mistakes, retries,
// and things out of date.
//
// What:    Next gives the next command, made from what the clients have been told so far. Told
// takes the answers. A worker
//          forgets nothing: old tokens, ids and cursors are tried again long after their time.
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/engine/command.h"
#include "tests/simulation/choices.h"

namespace delayd::simulation {

// What kind of clients one run has.
struct Habits {
  size_t queues = 3;
  size_t keys = 8;            // per queue
  size_t jobs_max = 150;      // above it clients enqueue little
  unsigned delay_bits = 31;   // delays of up to 2^delay_bits milliseconds
  bool shared_waits = false;  // workers that wait on several queues at once
  bool big_batches = false;
  bool narrow_quotas = false;      // users may have few jobs, and so may queues
  bool extremes = false;           // the shortest and longest times that may be asked for
  bool retentions_change = false;  // by a reload, and the defaults of all queues with them
  engine::QueueSettings defaults;  // what the daemon begins with
};

class Workload {
 public:
  Workload(const Habits& habits, Choices* choices) : habits_(habits), choices_(*choices) {}

  engine::Command Next(const Now& now, size_t live_jobs);
  void Told(const engine::Reply& reply);

  // Who waits, for Abandon and EndWait.
  void Waits(engine::RequestId request) { waiting_.push_back(request); }

  // The connections broke: requests under way will not be answered.
  void Disconnected() { waiting_.clear(); }

  const std::vector<std::string>& queues();

  // What an operator writes into the file (workload_settings.cc).
  engine::Configure Settings();

 private:
  JobSpec Spec(const Now& now);
  std::shared_ptr<JobPast> Past(const Now& now);
  DueSpec Due(const Now& now);
  Millis Delay();
  Millis LeaseLength(unsigned bits);
  std::string Error();
  std::string Prefix();
  JobRef Job();
  std::vector<std::string> Tags(const JobRef& job);
  LeaseToken Token();
  engine::Command NextAck();
  engine::Command NextCancel();
  engine::Command NextEnqueue(const Now& now);
  engine::Command NextLease();
  engine::Command NextList(const Now& now);
  engine::Command NextMany(const Now& now);
  engine::Command NextForecast(const Now& now);
  engine::Command NextQueues();
  // workload_mistakes.cc
  engine::Command NextMistake(const Now& now);
  DueSpec DueThatCannotBe();
  std::string BrokenCursor();
  engine::Command NextOfTheRest();
  engine::QueueSettings SettingsOfOne();
  uint32_t Priority();
  std::string Client();
  std::string Queue();
  std::string Key();

  Habits habits_;
  Choices& choices_;
  std::vector<std::string> queues_;
  std::vector<JobSpec> keyed_;  // sent before, to be sent again
  std::vector<JobId> ids_;
  std::map<JobId, std::string> tags_;  // as last told
  std::vector<LeaseToken> tokens_;
  std::vector<engine::RequestId> waiting_;
  std::vector<engine::List> next_pages_;
  engine::List last_list_;
  std::vector<std::string> next_queues_;  // cursors
  std::vector<engine::ChangeMany> next_steps_;
  engine::ChangeMany last_many_;
};

}  // namespace delayd::simulation

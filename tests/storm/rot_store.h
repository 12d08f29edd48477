// tests/storm/rot_store.h — a store with a job of every kind, what must be found in it, and an
// engine that looks.
//
// What:    BuildRotStore is deterministic in what it stores: the same seed gives the same jobs, so
//          that a damaged copy can be checked again later.
// Errors:  a failed check while building; damage while looking is a text, not an error.
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/job.h"
#include "daemon/engine/engine.h"
#include "storage/job_store.h"

namespace delayd::storm {

// An engine on a store, turned by hand.
class RotEngine {
 public:
  RotEngine(storage::JobStore* store, Now now) : store_(store), clock_(now) {}

  // The status of loading, and of the first commit.
  Status Start();
  // The reply; none when the engine or the store has stopped, see fatal().
  std::optional<engine::Reply> Call(engine::Command command);
  void Advance(Millis by);

  const Status& fatal() const { return fatal_; }

  std::vector<Status> TakeIncidents() { return engine_->TakeIncidents(); }

 private:
  void Turn();

  storage::JobStore* store_;
  SimulatedClock clock_;
  std::unique_ptr<engine::Engine> engine_;
  Status fatal_;
  std::vector<engine::Reply> replies_;
  engine::RequestId next_ = 1;
};

struct RotJob {
  JobSpec spec;
  JobState state = JobState::kScheduled;  // kScheduled, kDead or kFinished
};

using RotJobs = std::map<JobId, RotJob>;

// `in_order`: the daemon was stopped; else it was killed, and its last jobs are in the log only.
RotJobs BuildRotStore(const std::string& directory, uint64_t seed, bool in_order);

// When the store is looked at: everything is due.
Now RotNow();

struct RotFinding {
  bool harmless = false;           // all is there as if nothing had happened
  std::vector<std::string> named;  // what was said
  std::string violation;           // empty: none
};

// Opens `directory` and takes out everything. `file`: what was damaged, without its directory.
RotFinding CheckRottenStore(const std::string& directory,
                            const std::string& file,
                            const RotJobs& jobs);

}  // namespace delayd::storm

// tests/simulation/memory_audit.h — what must hold of an engine's memory between any two calls.
//
// What:    every count against what it counts; every frontier against the jobs that lie on disk
//          only: one that is before its frontier would never be loaded.
// Errors:  Run tells the first thing that does not hold.
// Threads: one. Cost: O(jobs) and O(rows).
#pragma once

#include <map>
#include <string>

#include "daemon/engine/engine_core.h"

namespace delayd::engine {

class MemoryAudit {
 public:
  explicit MemoryAudit(const Engine& engine) : core_(static_cast<const EngineCore&>(engine)) {}

  // Empty: all of it holds.
  std::string Run();

 private:
  struct Tally {
    uint64_t held = 0;
    uint64_t ready = 0;
    uint64_t urgent = 0;
    uint64_t leased = 0;
    uint64_t damaged = 0;
  };

  void Require(bool holds, const std::string& what);
  void TallyEntries();
  void CheckQueues();
  void CheckSums();
  void CheckLagging();
  void CheckRows();
  void CheckRow(const Frontier& place, QueueId queue);

  const EngineCore& core_;
  std::map<QueueId, Tally> of_queue_;
  Tally all_;
  std::string found_;
};

}  // namespace delayd::engine

// tests/checker/checker.h — decides from a history which promises were kept.
//
// What:    sorts the events by time and lets one small state machine for each job, key and lease
// watch them go by. A rule
//          fires only when no order of the overlapping requests explains what the clients saw: it
//          compares the time an answer came with the time a later request was sent, or two commit
//          sequences.
// Errors:  violations, each with the number of the invariant it breaks (docs/testing.md), the line
// and the reason. Threads: one. Cost: O(events log events); about a microsecond an event.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/checker/history.h"

namespace delayd::checker {

struct Violation {
  std::string invariant;  // "I5"
  uint64_t line = 0;      // of the event that shows it; 0: the end of the history
  std::string what;
};

struct Verdict {
  std::vector<Violation> violations;  // at most kViolationsMax are kept
  uint64_t violation_count = 0;
  uint64_t events = 0;
  uint64_t enqueued = 0;
  uint64_t delivered = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;
  uint64_t unknown = 0;  // requests without an answer
  uint64_t kills = 0;
  // I4: how late hand-outs were, by the server's stamp: p50, p99, p99.9, max.
  std::array<int64_t, 4> lateness_ms{};
};

struct CheckOptions {
  int64_t lateness_max_ms = kNotSet;  // I4: above it is a violation
};

inline constexpr size_t kViolationsMax = 100;

Verdict Check(History history, const CheckOptions& options = {});

}  // namespace delayd::checker

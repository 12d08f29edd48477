// tests/checker/history.h — what clients wrote down: one event for each request sent and each
// answer got.
//
// What:    the format is documented in docs/testing.md, "Histories".
// Units:   milliseconds; `t` on the boot clock of the machine that all clients share, `w` on its
// wall clock. Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace delayd::checker {

enum class Phase : uint8_t { kInvoke, kOk, kFail, kUnknown };
enum class Op : uint8_t {
  kNone,  // an answer names its request by (proc, n) only
  kEnqueue,
  kLease,
  kAck,
  kNack,
  kBury,
  kExtend,
  kCancel,
  kReschedule,
  kShow,
  kKick,
  kKill,    // the daemon was killed or stopped: leases of before are void
  kFinal,   // after the drain: what is still there
  kConfig,  // what the run promised: key_retention
  kDisk,    // what the stopped store holds, read without the daemon
};

inline constexpr int64_t kNotSet = INT64_MIN;

struct JobEntry {
  uint64_t id = 0;
  std::string queue;
  std::string key;
  std::string payload;
  std::string token;
  std::string state;
  int64_t delay = kNotSet;
  int64_t due = kNotSet;
  int64_t lease = kNotSet;
  int64_t late = kNotSet;
  uint32_t attempt = 0;
  uint32_t max_attempts = 0;
  bool existed = false;
};

struct Event {
  int64_t t = 0;
  int64_t w = kNotSet;
  uint32_t boot = 0;
  uint32_t proc = 0;
  uint64_t n = 0;
  uint64_t seq = 0;  // 0: the answer carried none
  uint64_t line = 0;
  Phase phase = Phase::kInvoke;
  Op op = Op::kNone;
  std::string code;
  int64_t key_retention = kNotSet;
  std::vector<std::string> faults;  // kDisk: what disagrees with what
  // Requests about one job have it as the only entry.
  std::vector<JobEntry> jobs;
};

using History = std::vector<Event>;

// Appends the events of one file; the order of several files is put right by the checker.
Status ReadHistory(const std::string& path, History* history);
Status ParseHistory(const std::string& text, History* history);

}  // namespace delayd::checker

// daemon/engine/queue_settings.h — how a queue behaves, as its operator wants it.
//
// Units:   base/time.h.
// Threads: values.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/limits.h"
#include "base/time.h"

namespace delayd::engine {

// At most `count` hand-outs in each `per`, and at most `burst` at once. count 0: no cap.
struct RateCap {
  uint32_t count = 0;
  Millis per{1000};
  uint32_t burst = 1;
  friend bool operator==(const RateCap&, const RateCap&) = default;
};

// A nack without a delay waits initial * factor^(attempt - 1), at most max, shortened by up to
// `jitter` of it, so that jobs that failed together do not come back together.
struct Backoff {
  Millis initial{1000};
  double factor = 2.0;
  Millis max{std::chrono::hours(1)};
  double jitter = 0.1;  // 0 to 1
};

struct QueueSettings {
  // For jobs that do not say otherwise when they are enqueued.
  Millis lease{limits::kLeaseMsDefault};
  uint32_t max_attempts = limits::kMaxAttemptsDefault;
  Backoff backoff;
  // How long a finished job keeps its key.
  Millis key_retention{limits::kKeyRetentionMsDefault};
  // How long its whole story is kept, payload included. 0: it is not.
  Millis history_retention{0};
  uint32_t concurrency = 0;  // jobs leased at a time; 0: no cap
  RateCap rate;
  uint32_t max_jobs = 0;  // stored at a time, dead ones too; 0: no quota
};

}  // namespace delayd::engine

// daemon/trusted_clock.h — the daemon's clock: the machine's clock, as far as it can be trusted.
//
// What:    passes each reading through a ClockWatch. While the clock is suspect it asks whether the
//          clock has been synchronised since. It logs each change of the verdict once.
// Units:   base/time.h.
// Errors:  none; without a time service to ask, the clock counts as not synchronised.
// Threads: the core thread.
// Cost:    that of the clock; while suspect, one system call a second.
// Source:  adjtimex(2), STA_UNSYNC; systemd-timesyncd(8); engine/clock_watch.h has the rules.
#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "daemon/engine/clock_watch.h"
#include "storage/job_store.h"

namespace delayd {

// When a time service last declared the wall clock right, by that clock; if the kernel declares it
// synchronised, that is now. None: neither does.
std::optional<WallTime> SynchronisedAt();

// The highest wall time that the last run recorded; none: the store is new.
StatusOr<std::optional<engine::ClockSeen>> ReadClockSeen(const storage::JobReader& store);

class TrustedClock final : public Clock {
 public:
  // `machine` must outlive this.
  TrustedClock(const Clock* machine,
               const engine::ClockWatchOptions& options,
               const std::optional<engine::ClockSeen>& last,
               uint64_t boot_id,
               std::function<std::optional<WallTime>()> synchronised_at = SynchronisedAt);

  Now Sample() const override;

  // Called once a turn; asks when it is time to. True: a time service says that the clock is right,
  // and the clock was accepted as it is.
  bool Tend();
  // When Tend next has something to do; none: the clock is not suspect.
  std::optional<BootTime> wake() const;

  // Accepts the clock as it is, on the operator's word.
  void Accept();

  engine::ClockState state() const { return watch_.state(); }

  // For people: what is wrong and what to do; empty: nothing.
  std::string Explain() const;

  uint64_t suspicions() const { return watch_.suspicions(); }

 private:
  bool IsSynchronised() const;
  void LogChange() const;

  const Clock* const machine_;
  const std::function<std::optional<WallTime>()> synchronised_at_;
  // Mutable because Sample is const for its callers but learns from each reading.
  mutable engine::ClockWatch watch_;
  mutable engine::ClockState logged_ = engine::ClockState::kTrusted;
  mutable WallTime suspect_since_;  // by the suspect clock itself
  mutable std::optional<WallTime> synchronised_then_;
  BootTime next_question_;
};

}  // namespace delayd

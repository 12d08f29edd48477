// daemon/trusted_clock.h — the clock that the daemon goes by: the machine's, as far as it can be
// believed.
//
// What:    passes each reading through a ClockWatch, asks while the clock is suspect whether it has
//          been synchronised since, and logs each change of mind once.
// Units:   base/time.h.
// Errors:  none; nobody to ask is nobody who knows.
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

// When a time service last said that the wall clock is right, told by that clock; the kernel says
// so of this moment. None: nobody says so.
std::optional<WallTime> SynchronisedAt();

// The highest wall time that the last run wrote down; none: the store is new.
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

  // Once a turn. Asks when it is time to. True: a time service says that the clock is right, and it
  // was accepted as it is.
  bool Tend();
  // When Tend has something to do next; none: the clock is not suspect.
  std::optional<BootTime> wake() const;

  // At the operator's word.
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
  // Sample is const to everybody who asks for the time, and yet learns from each answer.
  mutable engine::ClockWatch watch_;
  mutable engine::ClockState logged_ = engine::ClockState::kTrusted;
  mutable WallTime suspect_since_;  // as the clock shows it
  mutable std::optional<WallTime> synchronised_then_;
  BootTime next_question_;
};

}  // namespace delayd

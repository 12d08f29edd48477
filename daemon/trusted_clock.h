// daemon/trusted_clock.h — the clock that the daemon goes by: the machine's, as far as it can be
// believed.
//
// What:    passes each reading through a ClockWatch, asks the kernel while the clock is suspect
//          whether it is synchronised, and logs each change of mind once.
// Units:   base/time.h.
// Errors:  none; a kernel that may not be asked knows nothing.
// Threads: the core thread.
// Cost:    that of the clock; while suspect, one system call a second.
// Source:  adjtimex(2), STA_UNSYNC; engine/clock_watch.h has the rules.
#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "daemon/engine/clock_watch.h"
#include "storage/job_store.h"

namespace delayd {

// Whether the kernel's clock is disciplined by a time service.
bool KernelSaysSynchronised();

// The highest wall time that the last run wrote down; none: the store is new.
StatusOr<std::optional<engine::ClockSeen>> ReadClockSeen(const storage::JobReader& store);

class TrustedClock final : public Clock {
 public:
  // `machine` must outlive this.
  TrustedClock(const Clock* machine,
               const engine::ClockWatchOptions& options,
               const std::optional<engine::ClockSeen>& last,
               uint64_t boot_id,
               std::function<bool()> synchronised = KernelSaysSynchronised);

  Now Sample() const override;

  // Once a turn. Asks the kernel when it is time to. True: the clock was accepted as it is, though
  // it had been seen higher.
  bool Tend();
  // When Tend has something to do next; none: the clock is not suspect.
  std::optional<BootTime> wake() const;

  // At the operator's word.
  void Accept();

  engine::ClockState state() const { return watch_.state(); }

  // For people: what is wrong and what to do; empty: nothing.
  std::string Explain() const;

  uint64_t suspicions() const { return watch_.suspicions(); }

  bool synchronised() const { return synchronised_(); }

 private:
  void LogChange() const;

  const Clock* const machine_;
  const std::function<bool()> synchronised_;
  // Sample is const to everybody who asks for the time, and yet learns from each answer.
  mutable engine::ClockWatch watch_;
  mutable engine::ClockState logged_ = engine::ClockState::kTrusted;
  BootTime next_question_;
};

}  // namespace delayd

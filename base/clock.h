// base/clock.h — the only place where this project asks what time it is.
//
// Units:   see base/time.h.
// Errors:  none; a kernel without the clocks is a failed check.
// Threads: any.
// Cost:    two vDSO calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/time.h"

namespace delayd {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now Sample() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Now Sample() const override;
};

// Is only read, never slept on; tests move it by hand.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(Now start) : now_(start) {}

  [[nodiscard]] Now Sample() const override { return now_; }

  // Real time passes: both clocks go on.
  void Advance(Micros by) {
    const auto carry = [by](auto* time, Micros* rest) {
      const Millis whole = std::chrono::floor<Millis>(*rest + by);
      *rest += by - whole;
      *time += whole;
    };
    carry(&now_.wall, &now_.wall_rest);
    carry(&now_.boot, &now_.boot_rest);
  }

  // Somebody sets the wall clock, in either direction; the boot clock does not notice.
  void StepWall(Millis by) { now_.wall += by; }

 private:
  Now now_;
};

// A number that stays the same from boot to shutdown, and differs between boots and between time
// namespaces, as each of them has a boot clock of its own; 0 if the kernel does not provide it.
// Tests supply their own files.
uint64_t CurrentBootId(const std::string& boot_id_path = "/proc/sys/kernel/random/boot_id",
                       const std::string& offsets_path = "/proc/self/timens_offsets");

}  // namespace delayd

// daemon/awake_processors.h — asks the kernel to keep the processors awake while there is work.
//
// What:    a processor with nothing to do goes to sleep, and whoever it is to run next waits until
//          it is awake and its caches are warm again: a third of what one client waits for each
//          answer. Between Work and `idle` after the last one the kernel is asked for a wake-up
//          latency of zero, which no sleep can keep: idle processors spin. That holds for all
//          processors of the machine and costs their power, so it is the operator's choice.
// Units:   base/time.h.
// Errors:  Open says what is missing. A request that the kernel refuses later is logged once, and
//          no more are made.
// Threads: the core thread.
// Cost:    one write(2) when the first work comes and one when it has ended; else a comparison.
// Source:  the kernel's PM QoS interface, /dev/cpu_dma_latency; docs/decisions/0092. Closing the
//          device, as the end of the process does, takes the request back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace delayd {

class AwakeProcessors {
 public:
  static constexpr const char* kDevice = "/dev/cpu_dma_latency";

  // Nothing is asked for yet. Null for an `idle` of 0: they sleep as they like. `device` is another
  // file in tests.
  static StatusOr<std::unique_ptr<AwakeProcessors>> Open(Millis idle,
                                                         const std::string& device = kDevice);

  // Something is done for a client, or will be in a moment.
  void Work(BootTime now);
  // Once a turn. Lets the processors sleep when there was no work for long enough.
  void Tend(BootTime now);

  bool awake() const { return wake_.has_value(); }

  // When Tend has something to do next; none: nothing is asked for.
  std::optional<BootTime> wake() const { return wake_; }

  // How long they have been kept awake, all together.
  Millis AwakeFor(BootTime now) const {
    return awake_before_ + (wake_ ? now - awake_since_ : Millis(0));
  }

 private:
  AwakeProcessors(UniqueFd device, Millis idle) : device_(std::move(device)), idle_(idle) {}

  // False: the kernel does not take it.
  bool Ask(int32_t latency_us);

  UniqueFd device_;  // none: given up on
  Millis idle_;
  BootTime last_work_;
  // Stays where it is while work goes on, so that the turn's timer does too.
  std::optional<BootTime> wake_;
  BootTime awake_since_;    // while wake_ is set
  Millis awake_before_{0};  // in stretches that have ended
};

}  // namespace delayd

// daemon/awake_processors.h — asks the kernel to keep the processors awake while there is work.
//
// What:    an idle processor goes to sleep, and the next thread it runs has to wait until it is
//          awake and its caches are warm again: a third of the time that a single client waits for
//          each answer. From the first Work until `idle` after the last one, the kernel is asked
//          for a wake-up latency of zero. No sleep state is that fast, so idle processors spin.
//          This affects all processors of the machine and costs power, so the operator has to
//          choose it.
// Units:   base/time.h.
// Errors:  Open says what is missing. A request that the kernel refuses later is logged once, and
//          no more are made.
// Threads: the core thread.
// Cost:    one write(2) when work begins and one when it has ended; otherwise a comparison.
// Source:  the kernel's PM QoS interface, /dev/cpu_dma_latency; docs/decisions/0092. Closing the
//          device withdraws the request, and so does the end of the process.
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

  // Makes no request yet. Null if `idle` is 0: the processors may sleep. `device` is another file
  // in tests.
  static StatusOr<std::unique_ptr<AwakeProcessors>> Open(Millis idle,
                                                         const std::string& device = kDevice);

  // Work for a client is under way or about to begin.
  void Work(BootTime now);
  // Called once a turn. Lets the processors sleep after `idle` without work.
  void Tend(BootTime now);

  bool awake() const { return wake_.has_value(); }

  // When Tend next has something to do; none: no request is in force.
  std::optional<BootTime> wake() const { return wake_; }

  // The total time for which they have been kept awake.
  Millis AwakeFor(BootTime now) const {
    return awake_before_ + (wake_ ? now - awake_since_ : Millis(0));
  }

 private:
  AwakeProcessors(UniqueFd device, std::string path, Millis idle)
      : device_(std::move(device)), path_(std::move(path)), idle_(idle) {}

  // False: the kernel refuses.
  bool Ask(int32_t latency_us);

  UniqueFd device_;  // closed after a refusal
  std::string path_;
  Millis idle_;
  BootTime last_work_;
  // Not moved while work goes on, so that the turn's timer need not be set again.
  std::optional<BootTime> wake_;
  BootTime awake_since_;    // while wake_ is set
  Millis awake_before_{0};  // total of the earlier periods
};

}  // namespace delayd

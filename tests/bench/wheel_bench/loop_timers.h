// tests/bench/wheel_bench/loop_timers.h — an event loop's timers, driven as every other structure
// is.
//
// `Library` is made with (capacity, fired) and has Start(handle, delay), which also moves, Stop and
// RunOnce; what fires it adds to `fired`. Its clock is the virtual one (bench_clock.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/wheel_bench/register.h"

namespace delayd::bench {

inline constexpr uint64_t kNsPerMs = 1'000'000;
// A loop does not say when its next timer is due: it is asked this often.
inline constexpr Tick kLoopStepMs = 100;

// Begins before the library reads its clock for the first time, and ends after the last.
class VirtualTimeSpan {
 public:
  VirtualTimeSpan() { SetVirtualTime(kStart * kNsPerMs); }

  ~VirtualTimeSpan() { EndVirtualTime(); }

  VirtualTimeSpan(const VirtualTimeSpan&) = delete;
  VirtualTimeSpan& operator=(const VirtualTimeSpan&) = delete;
};

template <typename Library>
class LoopTimers {
 public:
  using Handle = uint32_t;
  static constexpr bool kBatches = false;

  explicit LoopTimers(size_t capacity) : library_(capacity, &fired_) {}

  Handle Add(Tick due, uint64_t id) {
    library_.Start(static_cast<Handle>(id), due - now_);
    ++pending_;
    return static_cast<Handle>(id);
  }

  void Cancel(Handle handle) {
    library_.Stop(handle);
    --pending_;
  }

  void Move(Handle& handle, Tick due) { library_.Start(handle, due - now_); }

  Tick Next() const { return pending_ == 0 ? wheel::kNever : now_ + kLoopStepMs; }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    now_ = now;
    SetVirtualTime(now * kNsPerMs);
    fired_.clear();
    library_.RunOnce();
    pending_ -= fired_.size();
    for (const Handle handle : fired_) {
      visit(handle);
    }
  }

 private:
  VirtualTimeSpan virtual_time_;
  std::vector<Handle> fired_;
  Library library_;
  size_t pending_ = 0;
  Tick now_ = kStart;
};

template <typename Library>
void RegisterLoop(const std::string& name) {
  for (const auto& [size, load] : {std::pair{"1M", k1M}, std::pair{"10M", k10M}}) {
    RegisterBasics<LoopTimers<Library>>(name, size, load);
    RegisterCase(name + "/drain/" + size, Drain<LoopTimers<Library>>, load);
  }
}

}  // namespace delayd::bench

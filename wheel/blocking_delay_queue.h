// wheel/blocking_delay_queue.h — a delay queue that threads can share and sleep on.
//
// Units:   ticks of `tick_ns` nanoseconds of the steady clock, counted from its zero.
// Errors:  none; after Close, Take hands out nothing more.
// Threads: any thread may call anything.
// Cost:    a mutex and O(log n). A sleeper is woken by its deadline, by an arrival that is earlier
//          than every other, or by Close; never by polling.
// Source:  take() and offer() of java.util.concurrent.DelayQueue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "wheel/delay_queue.h"
#include "wheel/waiter.h"

namespace delayd::wheel {

template <typename T>
class BlockingDelayQueue {
 public:
  explicit BlockingDelayQueue(uint64_t tick_ns = kNanosecondsPerMillisecond) : tick_ns_(tick_ns) {}

  TimerHandle Offer(T value, Tick due) {
    const std::lock_guard lock(mutex_);
    const bool first = due < queue_.NextExpiration();
    const TimerHandle handle = queue_.Offer(std::move(value), due);
    if (first) {
      head_changed_.notify_all();
    }
    return handle;
  }

  bool Remove(TimerHandle handle) {
    const std::lock_guard lock(mutex_);
    return queue_.Remove(handle);
  }

  // Sleeps until an element is due and takes it; nullopt once the queue is closed.
  std::optional<T> Take() {
    std::unique_lock lock(mutex_);
    while (!closed_) {
      const Tick head = queue_.NextExpiration();
      if (head > static_cast<uint64_t>(INT64_MAX) / tick_ns_) {
        head_changed_.wait(lock);
        continue;
      }
      const std::chrono::nanoseconds since_zero(static_cast<int64_t>(head * tick_ns_));
      const std::chrono::steady_clock::time_point due(since_zero);
      // A timeout proves that tick `head` has begun; another thread may have taken its element.
      if (head_changed_.wait_until(lock, due) == std::cv_status::timeout && !closed_) {
        if (auto value = queue_.Take(head)) {
          return value;
        }
      }
    }
    return std::nullopt;
  }

  // Ends all current and future waits.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    head_changed_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

 private:
  const uint64_t tick_ns_;
  mutable std::mutex mutex_;
  std::condition_variable head_changed_;
  DelayQueue<T> queue_;
  bool closed_ = false;
};

}  // namespace delayd::wheel

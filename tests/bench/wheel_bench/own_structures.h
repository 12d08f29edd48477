// tests/bench/wheel_bench/own_structures.h — wheel, heap, priority queue and map behind one face.
//
// Each has: Add(due, id) -> Handle, Cancel(handle), Move(handle, due), Next(), and
// Advance(now, visit) which calls visit(id) for all that is due, in order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <queue>
#include <span>
#include <vector>

#include "tests/bench/wheel_bench/bench_data.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/timing_wheel.h"

namespace delayd::bench {

template <bool kHugePages>
class WheelOf {
 public:
  using Handle = wheel::TimerHandle;
  static constexpr bool kBatches = true;

  explicit WheelOf(size_t /*capacity*/) : wheel_(kStart, {.huge_pages = kHugePages}) {}

  Handle Add(Tick due, uint64_t id) { return wheel_.Add(due, id); }

  void Cancel(Handle handle) { wheel_.Cancel(handle); }

  void Move(Handle& handle, Tick due) { wheel_.Move(handle, due); }

  Tick Next() { return wheel_.NextExpiration(); }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    size_t count = 0;
    do {
      count = wheel_.PopDue(now, out_);
      for (size_t i = 0; i < count; ++i) {
        visit(out_[i].id);
      }
    } while (count == out_.size());
  }

  void Apply(std::span<wheel::TimerCommand> commands) { wheel_.Apply(commands); }

 private:
  wheel::TimingWheel wheel_;
  std::array<wheel::Expired, 256> out_;
};

using Wheel = WheelOf<true>;
using WheelSmallPages = WheelOf<false>;

class Heap4 {
 public:
  using Handle = uint32_t;
  static constexpr bool kBatches = false;

  explicit Heap4(size_t /*capacity*/) {}

  Handle Add(Tick due, uint64_t id) { return heap_.Add({due, id}); }

  void Cancel(Handle handle) { heap_.Remove(handle); }

  void Move(Handle& handle, Tick due) { heap_.Update(handle, {due, heap_.Get(handle).id}); }

  Tick Next() { return heap_.empty() ? wheel::kNever : heap_.Top().due; }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    while (!heap_.empty() && heap_.Top().due <= now) {
      visit(heap_.Pop().id);
    }
  }

 private:
  struct Item {
    Tick due;
    uint64_t id;
  };

  struct Sooner {
    bool operator()(const Item& a, const Item& b) const { return a.due < b.due; }
  };

  wheel::IndexedPriorityQueue<Item, Sooner> heap_;
};

// std::priority_queue cannot remove: a cancel marks, and the dead are thrown out when they come up.
class LazyPriorityQueue {
 public:
  using Handle = uint32_t;
  static constexpr bool kBatches = false;

  explicit LazyPriorityQueue(size_t /*capacity*/) {}

  Handle Add(Tick due, uint64_t id) {
    Handle slot = static_cast<Handle>(slots_.size());
    if (free_.empty()) {
      slots_.push_back({id, 0});
    } else {
      slot = free_.back();
      free_.pop_back();
      slots_[slot].id = id;
    }
    queue_.push({due, slot, slots_[slot].version});
    return slot;
  }

  void Cancel(Handle handle) {
    ++slots_[handle].version;
    free_.push_back(handle);
  }

  void Move(Handle& handle, Tick due) { queue_.push({due, handle, ++slots_[handle].version}); }

  Tick Next() {
    while (!queue_.empty() && slots_[queue_.top().slot].version != queue_.top().version) {
      queue_.pop();
    }
    return queue_.empty() ? wheel::kNever : queue_.top().due;
  }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    while (Next() <= now) {
      const uint32_t slot = queue_.top().slot;
      queue_.pop();
      Cancel(slot);
      visit(slots_[slot].id);
    }
  }

 private:
  struct Item {
    Tick due;
    uint32_t slot;
    uint32_t version;

    bool operator<(const Item& other) const { return due > other.due; }
  };

  struct Slot {
    uint64_t id;
    uint32_t version;
  };

  std::priority_queue<Item> queue_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

class Multimap {
 public:
  using Map = std::multimap<Tick, uint64_t>;
  using Handle = Map::iterator;
  static constexpr bool kBatches = false;

  explicit Multimap(size_t /*capacity*/) {}

  Handle Add(Tick due, uint64_t id) { return map_.emplace(due, id); }

  void Cancel(Handle handle) { map_.erase(handle); }

  void Move(Handle& handle, Tick due) {
    auto node = map_.extract(handle);
    node.key() = due;
    handle = map_.insert(std::move(node));
  }

  Tick Next() { return map_.empty() ? wheel::kNever : map_.begin()->first; }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    while (!map_.empty() && map_.begin()->first <= now) {
      const uint64_t id = map_.begin()->second;
      map_.erase(map_.begin());
      visit(id);
    }
  }

 private:
  Map map_;
};

}  // namespace delayd::bench

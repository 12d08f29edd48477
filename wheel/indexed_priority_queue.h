// wheel/indexed_priority_queue.h — a min-heap whose elements can be found again and changed.
//
// Units:   a handle names an element from Add to Pop or Remove, wherever the heap moves it; after
//          that the number is given out again, so a caller who may hold stale ones checks itself.
// Errors:  Top or Pop of an empty queue and an unknown handle are DELAYD_CHECKs.
// Threads: one owner.
// Cost:    Top O(1); Add, Pop, Remove, Update O(log n), four children to a node because one cache
//          line of keys then settles a level; Add in rising order O(1). sizeof(T) + 8 bytes each.
// Source:  d-ary heap: Johnson, "Priority queues with update and finding minimum spanning trees",
// 1975.
//
//   IndexedPriorityQueue<Job, SoonerDue> queue;
//   auto handle = queue.Add(job);     queue.Update(handle, later);     queue.Remove(handle);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace delayd::wheel {

// `Less(a, b)`: a comes out before b. Elements that compare equal come out in no particular order;
// who needs first in, first out adds a sequence number to T.
template <typename T, typename Less = std::less<T>>
class IndexedPriorityQueue {
 public:
  using Handle = uint32_t;

  explicit IndexedPriorityQueue(Less less = Less()) : less_(std::move(less)) {}

  Handle Add(T value) {
    Handle handle = free_head_;
    if (handle != kNoHandle) {
      free_head_ = positions_[handle];
    } else {
      DELAYD_CHECK(positions_.size() < kNoHandle);
      handle = static_cast<Handle>(positions_.size());
      positions_.push_back(0);
    }
    heap_.push_back({std::move(value), handle});
    SiftUp(heap_.size() - 1);
    return handle;
  }

  const T& Top() const {
    DELAYD_CHECK(!heap_.empty());
    return heap_.front().value;
  }

  Handle TopHandle() const {
    DELAYD_CHECK(!heap_.empty());
    return heap_.front().handle;
  }

  T Pop() {
    DELAYD_CHECK(!heap_.empty());
    return RemoveAt(0);
  }

  T Remove(Handle handle) { return RemoveAt(PositionOf(handle)); }

  void Update(Handle handle, T value) {
    const size_t position = PositionOf(handle);
    heap_[position].value = std::move(value);
    SiftDown(SiftUp(position));
  }

  // Calls change(T&) on the element and puts it where it now belongs.
  template <typename Change>
  void Modify(Handle handle, Change change) {
    const size_t position = PositionOf(handle);
    change(heap_[position].value);
    SiftDown(SiftUp(position));
  }

  const T& Get(Handle handle) const { return heap_[PositionOf(handle)].value; }

  size_t size() const { return heap_.size(); }

  bool empty() const { return heap_.empty(); }

  // Every handle becomes unknown. Keeps the memory.
  void Clear() {
    heap_.clear();
    positions_.clear();
    free_head_ = kNoHandle;
  }

  void Reserve(size_t count) {
    heap_.reserve(count);
    positions_.reserve(count);
  }

  // Calls visit(const T&) for each element, in heap order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Node& node : heap_) {
      visit(node.value);
    }
  }

  size_t memory_bytes() const {
    return heap_.capacity() * sizeof(Node) + positions_.capacity() * sizeof(uint32_t);
  }

  // Stops the program if the heap is out of order or a handle leads astray. O(n).
  void CheckInvariants() const {
    for (size_t i = 0; i < heap_.size(); ++i) {
      DELAYD_CHECK(i == 0 || !less_(heap_[i].value, heap_[ParentOf(i)].value));
      DELAYD_CHECK(positions_[heap_[i].handle] == i);
    }
    size_t free_count = 0;
    for (Handle handle = free_head_; handle != kNoHandle; handle = positions_[handle]) {
      ++free_count;
    }
    DELAYD_CHECK(free_count + heap_.size() == positions_.size());
  }

 private:
  static constexpr size_t kArity = 4;
  static constexpr Handle kNoHandle = UINT32_MAX;

  struct Node {
    T value;
    Handle handle;
  };

  static size_t ParentOf(size_t position) { return (position - 1) / kArity; }

  size_t PositionOf(Handle handle) const {
    DELAYD_CHECK(handle < positions_.size());
    const size_t position = positions_[handle];
    // A freed handle holds a link, not a position; the node there then belongs to someone else.
    DELAYD_CHECK(position < heap_.size());
    DELAYD_CHECK(heap_[position].handle == handle);
    return position;
  }

  void Place(size_t position, Node node) {
    positions_[node.handle] = static_cast<uint32_t>(position);
    heap_[position] = std::move(node);
  }

  size_t SiftUp(size_t position) {
    Node node = std::move(heap_[position]);
    while (position > 0 && less_(node.value, heap_[ParentOf(position)].value)) {
      Place(position, std::move(heap_[ParentOf(position)]));
      position = ParentOf(position);
    }
    Place(position, std::move(node));
    return position;
  }

  void SiftDown(size_t position) {
    Node node = std::move(heap_[position]);
    for (;;) {
      const size_t first = position * kArity + 1;
      if (first >= heap_.size()) {
        break;
      }
      size_t best = first;
      const size_t end = first + kArity < heap_.size() ? first + kArity : heap_.size();
      for (size_t child = first + 1; child < end; ++child) {
        if (less_(heap_[child].value, heap_[best].value)) {
          best = child;
        }
      }
      if (!less_(heap_[best].value, node.value)) {
        break;
      }
      Place(position, std::move(heap_[best]));
      position = best;
    }
    Place(position, std::move(node));
  }

  T RemoveAt(size_t position) {
    Node removed = std::move(heap_[position]);
    positions_[removed.handle] = free_head_;
    free_head_ = removed.handle;
    Node last = std::move(heap_.back());
    heap_.pop_back();
    if (position < heap_.size()) {
      Place(position, std::move(last));
      SiftDown(SiftUp(position));
    }
    return std::move(removed.value);
  }

  Less less_;
  Handle free_head_ = kNoHandle;
  std::vector<Node> heap_;
  std::vector<uint32_t> positions_;  // by handle: position in the heap, or the next free handle
};

}  // namespace delayd::wheel

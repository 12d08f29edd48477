// wheel/indexed_priority_queue.h — a min-heap whose elements can be looked up and changed later.
//
// What:    elements added in ascending order are appended to a sorted array (the row); all others
//          go into a heap beside it. Due times mostly arrive in ascending order.
// Units:   a handle names an element from Add to Pop or Remove, wherever it moves. After that the
//          number is reused, so a caller who may hold stale handles must check for that itself.
// Errors:  Top or Pop of an empty queue and an unknown handle are DELAYD_CHECKs.
// Threads: one owner.
// Cost:    Top O(1); in the row Add, Pop and Remove are O(1) amortised: the row is compacted when
//          more than half of it was removed. In the heap O(log n), with four children per node
//          because one cache line of keys then settles a level. sizeof(T) + 8 bytes per element; 4
//          of those are kept for as many elements as there were at most since the queue was last
//          empty. No Add moves existing elements.
// Source:  d-ary heap: Johnson, "Priority queues with update and finding minimum spanning trees",
//          1975.
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
#include "wheel/segmented_array.h"

namespace delayd::wheel {

// `Less(a, b)`: a comes out before b. Elements that compare equal come out in no particular order;
// for first in, first out add a sequence number to T.
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
      DELAYD_CHECK(positions_.size() < kRowBit);
      handle = static_cast<Handle>(positions_.size());
      positions_.push_back(0);
    }
    Insert({std::move(value), handle});
    return handle;
  }

  const T& Top() const { return TopNode().value; }

  Handle TopHandle() const { return TopNode().handle; }

  T Pop() { return Remove(TopNode().handle); }

  T Remove(Handle handle) {
    Node removed = Take(PositionOf(handle));
    positions_[handle] = free_head_;
    free_head_ = handle;
    if (empty() && positions_.size() > kKeptMax) {
      GiveBack();
    }
    return std::move(removed.value);
  }

  void Update(Handle handle, T value) {
    Modify(handle, [&value](T& element) { element = std::move(value); });
  }

  // Calls change(T&) on the element and puts it where it now belongs.
  template <typename Change>
  void Modify(Handle handle, Change change) {
    const uint32_t position = PositionOf(handle);
    if ((position & kRowBit) == 0) {
      change(heap_[position].value);
      SiftDown(SiftUp(position));
      return;
    }
    Node node = Take(position);
    change(node.value);
    Insert(std::move(node));
  }

  const T& Get(Handle handle) const {
    const uint32_t position = PositionOf(handle);
    return ((position & kRowBit) == 0 ? heap_[position] : row_[position & ~kRowBit]).value;
  }

  size_t size() const { return heap_.size() + row_live_; }

  bool empty() const { return size() == 0; }

  // Makes every handle unknown. Keeps the memory of the handle table.
  void Clear() {
    heap_.clear();
    row_.clear();
    row_begin_ = 0;
    row_live_ = 0;
    positions_.clear();
    free_head_ = kNoHandle;
  }

  // Calls visit(const T&) for each element, in no particular order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = row_begin_; i < row_.size(); ++i) {
      if (row_[i].handle != kNoHandle) {
        visit(row_[i].value);
      }
    }
    for (size_t i = 0; i < heap_.size(); ++i) {
      visit(heap_[i].value);
    }
  }

  size_t memory_bytes() const {
    return (heap_.capacity() + row_.capacity()) * sizeof(Node) +
           positions_.capacity() * sizeof(uint32_t);
  }

  // Stops the program if anything is out of order or a handle is wrong. O(n).
  void CheckInvariants() const {
    size_t live = 0;
    const Node* before = nullptr;
    for (size_t i = row_begin_; i < row_.size(); ++i) {
      if (row_[i].handle != kNoHandle) {
        DELAYD_CHECK(before == nullptr || !less_(row_[i].value, before->value));
        DELAYD_CHECK(positions_[row_[i].handle] == (i | kRowBit));
        before = &row_[i];
        ++live;
      }
    }
    DELAYD_CHECK(live == row_live_);
    DELAYD_CHECK(live == 0 ? row_.empty() : before == &row_.back());
    DELAYD_CHECK(row_.size() <= 2 * live + kRowSlack);
    for (size_t i = 0; i < heap_.size(); ++i) {
      DELAYD_CHECK(i == 0 || !less_(heap_[i].value, heap_[ParentOf(i)].value));
      DELAYD_CHECK(positions_[heap_[i].handle] == i);
    }
    size_t free_count = 0;
    for (Handle handle = free_head_; handle != kNoHandle; handle = positions_[handle]) {
      ++free_count;
    }
    DELAYD_CHECK(free_count + size() == positions_.size());
  }

 private:
  static constexpr size_t kArity = 4;
  static constexpr Handle kNoHandle = UINT32_MAX;
  // Set in a position that refers to the row.
  static constexpr uint32_t kRowBit = uint32_t{1} << 31;
  // This many removed elements are tolerated in the row before it is compacted.
  static constexpr size_t kRowSlack = 64;
  // When the queue becomes empty, it keeps its memory if it held at most this many elements.
  static constexpr size_t kKeptMax = 1024;

  struct Node {
    T value;
    Handle handle;  // kNoHandle: removed from the row
  };

  static size_t ParentOf(size_t position) { return (position - 1) / kArity; }

  uint32_t PositionOf(Handle handle) const {
    DELAYD_CHECK(handle < positions_.size());
    const uint32_t position = positions_[handle];
    // A freed handle holds a free-list link, not a position; the node there belongs to another
    // handle.
    const SegmentedArray<Node>& nodes = (position & kRowBit) == 0 ? heap_ : row_;
    const uint32_t index = position & ~kRowBit;
    DELAYD_CHECK(index < nodes.size());
    DELAYD_CHECK(nodes[index].handle == handle);
    return position;
  }

  const Node& TopNode() const {
    DELAYD_CHECK(!empty());
    if (heap_.empty() || (row_live_ > 0 && !less_(heap_.front().value, row_[row_begin_].value))) {
      return row_[row_begin_];
    }
    return heap_.front();
  }

  void Insert(Node node) {
    if (row_live_ > 0 && less_(node.value, row_.back().value)) {
      heap_.push_back(std::move(node));
      SiftUp(heap_.size() - 1);
      return;
    }
    positions_[node.handle] = static_cast<uint32_t>(row_.size()) | kRowBit;
    row_.push_back(std::move(node));
    ++row_live_;
  }

  // Takes the node out of the row or the heap; its handle stays allocated.
  Node Take(uint32_t position) {
    return (position & kRowBit) == 0 ? TakeFromHeap(position) : TakeFromRow(position & ~kRowBit);
  }

  Node TakeFromRow(size_t index) {
    Node removed{std::move(row_[index].value), row_[index].handle};
    row_[index].handle = kNoHandle;
    --row_live_;
    if (row_live_ == 0) {
      row_.clear();
      row_begin_ = 0;
      return removed;
    }
    while (row_[row_begin_].handle == kNoHandle) {
      ++row_begin_;
    }
    while (row_.back().handle == kNoHandle) {
      row_.pop_back();
    }
    if (row_.size() > 2 * row_live_ + kRowSlack) {
      Squeeze();
    }
    return removed;
  }

  void Squeeze() {
    size_t to = 0;
    for (size_t i = row_begin_; i < row_.size(); ++i) {
      if (row_[i].handle == kNoHandle) {
        continue;
      }
      if (to != i) {
        row_[to] = std::move(row_[i]);
      }
      positions_[row_[to].handle] = static_cast<uint32_t>(to) | kRowBit;
      ++to;
    }
    row_.Truncate(to);
    row_begin_ = 0;
  }

  void Place(size_t position, Node node) {
    positions_[node.handle] = static_cast<uint32_t>(position);
    heap_[position] = std::move(node);
  }

  // There may be thousands of queues, each of which was long at some time.
  void GiveBack() {
    heap_ = SegmentedArray<Node>();
    row_ = SegmentedArray<Node>();
    positions_ = std::vector<uint32_t>();
    free_head_ = kNoHandle;
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

  Node TakeFromHeap(size_t position) {
    Node removed = std::move(heap_[position]);
    Node last = std::move(heap_.back());
    heap_.pop_back();
    if (position < heap_.size()) {
      Place(position, std::move(last));
      SiftDown(SiftUp(position));
    }
    return removed;
  }

  Less less_;
  Handle free_head_ = kNoHandle;
  SegmentedArray<Node> heap_;
  SegmentedArray<Node> row_;  // ascending; its last element and that at row_begin_ are live
  size_t row_begin_ = 0;      // everything before it was removed
  size_t row_live_ = 0;
  std::vector<uint32_t> positions_;  // by handle: a position, or the next free handle
};

}  // namespace delayd::wheel

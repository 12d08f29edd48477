// wheel/timer_slab.h — stores timers: 16-byte nodes in segments, found by index + generation.
//
// A node holds the caller's id and one word: generation (22 bits), kind (2), version (8), payload
// (32). The generation distinguishes a handle's timer from earlier users of the node. The version,
// which also changes when a timer is moved, distinguishes the node's current entry from stale ones
// (wheel/entry_list.h).
//
// Units:   indices below 2^32 - 2^17.
// Errors:  more timers than indices is a DELAYD_CHECK.
// Threads: one owner.
// Cost:    Allocate, Free and Contains O(1); 16 bytes per timer at their peak number, 4 more per
//          free node. Memory is not released before destruction. A node whose 4 million generations
//          are used up is retired instead of reused, so that a stale handle can always be
//          recognised: 16 bytes for every 4 million timers that passed through one node.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "wheel/page_block.h"
#include "wheel/timer.h"

namespace delayd::wheel {

enum class NodeKind : uint8_t {
  kFree = 0,
  kNear = 1,     // payload: the low 32 bits of the due tick
  kFar = 2,      // payload: index of the whole due tick in a side table
  kOverdue = 3,  // payload: handle in the heap of timers added after their due tick
};

struct TimerNode {
  uint64_t id;
  uint64_t word;
};

static_assert(sizeof(TimerNode) == 16);

constexpr unsigned kPayloadBits = 32;
constexpr uint64_t kPayloadMask = (uint64_t{1} << kPayloadBits) - 1;
constexpr unsigned kVersionBits = 8;
constexpr uint64_t kVersionMask = ((uint64_t{1} << kVersionBits) - 1) << kPayloadBits;
constexpr unsigned kKindShift = kPayloadBits + kVersionBits;
constexpr unsigned kGenerationShift = kKindShift + 2;
constexpr uint64_t kGenerationMask = ~uint64_t{0} << kGenerationShift;

inline NodeKind KindOf(uint64_t word) {
  return static_cast<NodeKind>((word >> kKindShift) & 3);
}

inline uint64_t GenerationOf(uint64_t word) {
  return word >> kGenerationShift;
}

inline uint8_t VersionOf(uint64_t word) {
  return static_cast<uint8_t>(word >> kPayloadBits);
}

// The word of the same timer after it was filed again: entries written about it before are stale.
inline uint64_t Refiled(uint64_t word, NodeKind kind, uint64_t payload) {
  const uint64_t version = (word + (uint64_t{1} << kPayloadBits)) & kVersionMask;
  return (word & kGenerationMask) | (static_cast<uint64_t>(kind) << kKindShift) | version | payload;
}

inline TimerHandle MakeHandle(uint32_t index, uint64_t generation) {
  return TimerHandle{(generation << 32) | index};
}

inline uint32_t IndexOf(TimerHandle handle) {
  return static_cast<uint32_t>(handle);
}

class TimerSlab {
 public:
  explicit TimerSlab(bool huge_pages) : huge_pages_(huge_pages) {}

  // Returns a node of kind kFree for the caller to fill in. Its generation is set.
  uint32_t Allocate() {
    if (free_count_ > 0) {
      return FreeStackAt(--free_count_);
    }
    if (high_water_ == segments_.size() * kSegmentNodes) {
      AddSegment();
    }
    const uint32_t index = high_water_++;
    NodeAt(index).word = uint64_t{1} << kGenerationShift;
    return index;
  }

  // Makes every handle and every entry that names the node stale.
  void Free(uint32_t index) { Free(NodeAt(index), index); }

  void Free(TimerNode& node, uint32_t index) {
    // The kind is masked out, so a carry out of the version ends there, and the sum has the next
    // generation.
    constexpr uint64_t kKept = kGenerationMask | kVersionMask;
    constexpr uint64_t kNext = (uint64_t{1} << kGenerationShift) + (uint64_t{1} << kPayloadBits);
    const uint64_t word = ((node.word & kKept) + kNext) & kKept;
    node.word = word;
    if (GenerationOf(word) == 0) [[unlikely]] {
      ++retired_count_;
      return;
    }
    FreeStackAt(free_count_++) = index;
  }

  // Does a timer still have this handle?
  bool Contains(TimerHandle handle) const {
    if (IndexOf(handle) >= high_water_) {
      return false;
    }
    const uint64_t word = NodeAt(IndexOf(handle)).word;
    const bool same = GenerationOf(word) == static_cast<uint64_t>(handle) >> 32;
    return same && KindOf(word) != NodeKind::kFree;
  }

  TimerNode& NodeAt(uint32_t index) {
    return segments_[index / kSegmentNodes].nodes[index % kSegmentNodes];
  }

  const TimerNode& NodeAt(uint32_t index) const {
    return segments_[index / kSegmentNodes].nodes[index % kSegmentNodes];
  }

  // Prefetches what the next access to the node needs. Always inlined: g++ 12 considers a function
  // that only prefetches free of effects and deletes the call.
  [[gnu::always_inline]] void Prefetch(uint32_t index) const {
    __builtin_prefetch(&NodeAt(index), 1);
  }

  // The same for a handle that may be stale or made up.
  [[gnu::always_inline]] void Prefetch(TimerHandle handle) const {
    if (IndexOf(handle) < high_water_) {
      Prefetch(IndexOf(handle));
    }
  }

  // The same for the node that Allocate will return after `ahead` others.
  [[gnu::always_inline]] void PrefetchFree(uint32_t ahead) const {
    if (ahead < free_count_) {
      Prefetch(FreeStackAt(free_count_ - 1 - ahead));
    }
  }

  // One past the highest index ever given.
  uint32_t high_water() const { return high_water_; }

  // How many nodes are in use.
  uint32_t live_count() const { return high_water_ - free_count_ - retired_count_; }

  uint32_t free_count() const { return free_count_; }

  uint32_t retired_count() const { return retired_count_; }

  size_t memory_bytes() const;

 private:
  // 2 MiB of nodes, one huge page.
  static constexpr uint32_t kSegmentNodes = uint32_t{1} << (17 - kSegmentShrink);

  struct Segment {
    TimerNode* nodes;  // followed by the free indices
    PageBlock block;
  };

  static uint32_t* FreeStackOf(const Segment& segment) {
    return reinterpret_cast<uint32_t*>(segment.nodes + kSegmentNodes);
  }

  uint32_t& FreeStackAt(uint32_t position) {
    return FreeStackOf(segments_[position / kSegmentNodes])[position % kSegmentNodes];
  }

  uint32_t FreeStackAt(uint32_t position) const {
    return FreeStackOf(segments_[position / kSegmentNodes])[position % kSegmentNodes];
  }

  void AddSegment();

  bool huge_pages_;
  uint32_t high_water_ = 0;
  uint32_t free_count_ = 0;
  uint32_t retired_count_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace delayd::wheel

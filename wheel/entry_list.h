// wheel/entry_list.h — the contents of a slot: 8-byte entries in 256-byte chunks, appended at a hot
// tail.
//
// An entry refers to a node by index, and carries the node's version at the time of writing and the
// low 24 bits of the due tick. So a slot can be sorted or moved down a level without touching a
// node, and an entry that differs from its node in either is stale: the timer was cancelled, moved
// or fired.
//
// Units:   a position is chunk * 32 + word; word 0 of a chunk is its header.
// Errors:  more than 2^27 chunks (4 thousand million entries) is a DELAYD_CHECK.
// Threads: one owner.
// Cost:    Append and PopFront O(1); memory 256 bytes per chunk, kept for reuse until destruction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "wheel/page_block.h"

namespace delayd::wheel {

constexpr unsigned kEntryLowBits = 24;
constexpr uint32_t kEntryLowMask = (uint32_t{1} << kEntryLowBits) - 1;

struct Entry {
  uint32_t index;
  uint32_t stamp;  // version in the high 8 bits, low bits of the due tick below

  uint32_t low() const { return stamp & kEntryLowMask; }
};

static_assert(sizeof(Entry) == 8);

inline uint32_t MakeStamp(uint8_t version, uint64_t due) {
  return (uint32_t{version} << kEntryLowBits) | (static_cast<uint32_t>(due) & kEntryLowMask);
}

// A queue of chunks. `tail` is the position of the next entry; it stands on a chunk boundary when
// the last chunk is full or there is none.
struct EntryList {
  uint32_t head = 0;  // chunk 0 exists only to mean "none"
  uint32_t tail = 0;

  bool empty() const { return head == 0; }
};

class ChunkPool {
 public:
  static constexpr uint32_t kChunkWords = 32;
  static constexpr uint32_t kChunkEntries = kChunkWords - 1;

  // True if a chunk had to be added.
  bool Append(EntryList& list, Entry entry) {
    const bool extend = list.tail % kChunkWords == 0;
    if (extend) [[unlikely]] {
      Extend(list);
    }
    *At(list.tail++) = entry;
    return extend;
  }

  // The entries of one chunk; valid until the chunk is freed.
  struct Chunk {
    uint32_t number;
    uint32_t count;
    const Entry* entries;
  };

  Chunk Front(const EntryList& list) const { return ChunkAt(list, list.head); }

  Chunk ChunkAt(const EntryList& list, uint32_t chunk) const {
    const uint32_t last = list.tail - 1;
    const Entry* words = At(chunk * kChunkWords);
    return {chunk, chunk == last / kChunkWords ? last % kChunkWords : words->stamp, words + 1};
  }

  // The chunk after this one; 0 after the last.
  uint32_t NextOf(const EntryList& list, uint32_t chunk) const {
    return chunk == (list.tail - 1) / kChunkWords ? 0 : At(chunk * kChunkWords)->index;
  }

  // Unlinks the first chunk but leaves it readable; pass it to Free once its entries have been
  // processed.
  void PopFront(EntryList& list) {
    const uint32_t next = NextOf(list, list.head);
    list.head = next;
    if (next == 0) {
      list.tail = 0;
    }
  }

  void Free(uint32_t chunk) {
    *At(chunk * kChunkWords) = {free_head_, 0};
    free_head_ = chunk;
  }

  // Puts all of `front` before `list` and leaves `front` empty.
  void SpliceFront(EntryList& front, EntryList& list);

  // Both are always inlined, for the reason given in timer_slab.h.
  [[gnu::always_inline]] void PrefetchChunk(uint32_t chunk) const {
    if (chunk != 0) {
      const Entry* words = At(chunk * kChunkWords);
      for (uint32_t word = 0; word < kChunkWords; word += 8) {
        __builtin_prefetch(words + word);
      }
    }
  }

  [[gnu::always_inline]] void PrefetchTail(const EntryList& list) const {
    if (list.tail % kChunkWords != 0) {
      __builtin_prefetch(At(list.tail), 1);
    }
  }

  size_t memory_bytes() const;

 private:
  // 2 MiB of small pages: PopDue takes new chunks while it stages a slot, and zeroing a huge page
  // would delay it by 0.2 ms.
  static constexpr uint32_t kSegmentChunks = uint32_t{1} << (13 - kSegmentShrink);
  static constexpr uint32_t kSegmentWords = kSegmentChunks * kChunkWords;

  struct Segment {
    Entry* words;
    PageBlock block;
  };

  Entry* At(uint32_t position) const {
    return segments_[position / kSegmentWords].words + position % kSegmentWords;
  }

  // Links a fresh chunk behind a full (or no) tail.
  void Extend(EntryList& list);
  uint32_t AllocateChunk();

  uint32_t free_head_ = 0;
  uint32_t high_water_ = 1;
  std::vector<Segment> segments_;
};

}  // namespace delayd::wheel

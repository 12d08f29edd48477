// wheel/slot_set.h — the ordered set of a level's non-empty slots, which tells the wheel where to
// go next.
//
// A bitmap with one summary word per 64 words. A level's slots expire in ring order, so "which slot
// is next" is "which bit is next"; docs/decisions/0011 has the heap this was measured against.
//
// Units:   slot numbers below the size given at construction, a power of two.
// Errors:  none.
// Threads: one owner.
// Cost:    Insert, Erase, Contains O(1); DistanceToNext and FindAtOrAfter O(size / 4096): one or
//          two words for every usual size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace delayd::wheel {

class SlotSet {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  SlotSet() = default;

  explicit SlotSet(size_t size)
      : size_(size), words_((size + 63) / 64), summary_((words_.size() + 63) / 64) {}

  void Insert(size_t slot) {
    words_[slot / 64] |= Bit(slot);
    summary_[slot / 4096] |= Bit(slot / 64);
  }

  void Erase(size_t slot) {
    words_[slot / 64] &= ~Bit(slot);
    if (words_[slot / 64] == 0) {
      summary_[slot / 4096] &= ~Bit(slot / 64);
    }
  }

  bool Contains(size_t slot) const { return (words_[slot / 64] & Bit(slot)) != 0; }

  // How many slots the next one in the set is after `from`, which counts as 0, going round the
  // ring; kNone if the set is empty.
  size_t DistanceToNext(size_t from) const {
    size_t found = FindAtOrAfter(from);
    if (found == kNone) {
      found = FindAtOrAfter(0);
    }
    return found == kNone ? kNone : (found - from) & (size_ - 1);
  }

  // The lowest slot in the set at or above `from`; kNone if there is none.
  size_t FindAtOrAfter(size_t from) const {
    size_t word = from / 64;
    if (word >= words_.size()) {
      return kNone;
    }
    if (const uint64_t rest = words_[word] >> (from % 64); rest != 0) {
      return from + static_cast<size_t>(std::countr_zero(rest));
    }
    ++word;
    for (size_t group = word / 64; group < summary_.size(); ++group) {
      uint64_t bits = summary_[group];
      if (group == word / 64) {
        bits &= ~uint64_t{0} << (word % 64);
      }
      if (bits != 0) {
        word = group * 64 + static_cast<size_t>(std::countr_zero(bits));
        return word * 64 + static_cast<size_t>(std::countr_zero(words_[word]));
      }
    }
    return kNone;
  }

  size_t memory_bytes() const {
    return (words_.capacity() + summary_.capacity()) * sizeof(uint64_t);
  }

 private:
  static uint64_t Bit(size_t slot) { return uint64_t{1} << (slot % 64); }

  size_t size_ = 0;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> summary_;
};

}  // namespace delayd::wheel

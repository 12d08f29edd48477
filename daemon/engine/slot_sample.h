// daemon/engine/slot_sample.h — a bounded sample of the job table, which may have ten million
// entries.
//
// What:    looks at one slot of every `stride`, at a position within the stride that is hashed from
//          its number. The jobs of two queues may alternate, and a fixed position would see only
//          one of the queues.
// Errors:  none.
// Threads: any.
// Cost:    16,384 looks or, if that is more, as many as give the smallest group 64; never more than
//          there are slots. Where a quarter of the jobs is to go, the share is met to within 1 %,
//          or to within 10 % for a queue with 64 looks. Below 32,768 slots it is exact. A larger
//          queue needs fewer looks than the stride gives it: about an eighth of its jobs are
//          remembered at most, or 64, and never more than 16,384.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/engine/job_table.h"

namespace delayd::engine {

inline constexpr size_t kSampledSlots = 16'384;
inline constexpr size_t kSampledOfEach = 64;

// `fewest`: how many jobs the smallest group has that must be seen.
inline size_t SampleStride(Slot slots, size_t fewest) {
  return std::max<size_t>(std::min(slots / kSampledSlots, fewest / kSampledOfEach), 1);
}

// `from`: a multiple of `stride`.
template <typename Visit>
void ForEachSampled(Slot from, Slot to, size_t stride, const Visit& visit) {
  for (uint64_t begin = from; begin < to; begin += stride) {
    const uint64_t slot = begin + ((begin + 1) * 0x9e3779b97f4a7c15 >> 32) % stride;
    if (slot < to) {
      visit(static_cast<Slot>(slot));
    }
  }
}

// Of the looks at a group of `jobs`, remembering one in this many is enough.
inline size_t LooksPerNote(Slot slots, size_t stride, size_t jobs) {
  if (slots < 2 * kSampledSlots) {
    return 1;
  }
  const size_t enough = std::clamp(jobs / 8, kSampledOfEach, kSampledSlots);
  return std::max<size_t>(jobs / stride / enough, 1);
}

// Whether this look is remembered: hashed from the slot, too, but differently from ForEachSampled.
inline bool IsNoted(Slot slot, size_t looks_per_note) {
  return ((uint64_t{slot} + 1) * 0xd6e8feb86659fd93 >> 32) % looks_per_note == 0;
}

// The place that has `keep` / `all` of the samples before it. At least one was sampled, and `keep`
// is less than `all`.
template <typename Place>
Place PlaceOfShare(size_t keep, size_t all, std::vector<Place>* sampled) {
  const auto place = sampled->begin() + static_cast<std::ptrdiff_t>(sampled->size() * keep / all);
  std::nth_element(sampled->begin(), place, sampled->end());
  return *place;
}

}  // namespace delayd::engine

// Removes the entries that cancels and moves leave behind.
//
// A cancel touches only its node; the entry in the slot is later recognised as stale by comparison.
// Stale entries must not take ever more memory. Memory grows by chunks; so whenever a new chunk is
// needed while there are more than two stale entries per live timer, two or more old chunks of a
// roving slot are swept first. Cancels cost nothing extra, whatever their pattern.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "wheel/timing_wheel.h"

namespace delayd::wheel {

namespace {

// With two thirds of the entries stale, sweeping two chunks frees more than the one taken. If
// mostly live entries are met first and the ratio gets worse, six chunks free two even if only a
// third is stale.
constexpr uint32_t kChunksPerSweep = 2;
constexpr uint32_t kChunksPerSweepLate = 6;
constexpr size_t kStaleMin = 256;
constexpr unsigned kSlotsPerSweep = 4;

}  // namespace

// Allows three entries per live timer, or one per node that ever existed: nodes are kept anyway.
void TimingWheel::SweepIfCrowded() {
  const size_t bound = std::max<size_t>(3 * size(), slab_.high_water()) + kStaleMin;
  if (entry_count_ > bound) {
    const bool late = entry_count_ > bound + bound / 8;
    SweepSome((late ? kChunksPerSweepLate : kChunksPerSweep) * ChunkPool::kChunkEntries);
  }
}

void TimingWheel::SweepSome(uint32_t entries_left) {
  unsigned slots_left = kSlotsPerSweep;
  while (slots_left > 0) {
    if (!sweep_.active) {
      PickSweepSlot();
    }
    EntryList& rest = levels_[sweep_.level].slots[sweep_.ring];
    if (rest.empty()) {
      FinishSweepSlot();
      --slots_left;
      continue;
    }
    if (entries_left == 0) {
      return;
    }
    const ChunkPool::Chunk chunk = chunks_.Front(rest);
    const uint32_t skip =
        sweep_.level == 0 && sweep_.ring == levels_[0].RingOf(current_) ? slot_offset_ : 0;
    slot_offset_ -= skip;
    chunks_.PopFront(rest);
    // No branch on whether an entry is live: in a slot full of cancelled timers it could not be
    // predicted.
    std::array<Entry, ChunkPool::kChunkEntries> kept;
    uint32_t kept_count = 0;
    for (uint32_t i = skip; i < chunk.count; ++i) {
      kept[kept_count] = chunk.entries[i];
      kept_count += IsLive(chunk.entries[i]) ? 1U : 0U;
    }
    entry_count_ -= chunk.count - skip - kept_count;
    chunks_.Free(chunk.number);
    for (uint32_t i = 0; i < kept_count; ++i) {
      chunks_.Append(sweep_.swept, kept[i]);
    }
    FetchForSweep(rest);
    entries_left -= entries_left < chunk.count ? entries_left : chunk.count;
  }
}

// Prefetches the nodes that the next step will read, and the chunk that the step after it will.
void TimingWheel::FetchForSweep(const EntryList& rest) const {
  if (rest.empty()) {
    return;
  }
  const ChunkPool::Chunk next = chunks_.Front(rest);
  for (uint32_t i = 0; i < next.count; ++i) {
    slab_.Prefetch(next.entries[i].index);
  }
  chunks_.PrefetchChunk(chunks_.NextOf(rest, next.number));
}

// Picks the next non-empty slot after the last one swept, level by level, round and round. There is
// one: a sweep begins when a live timer has just been put into a slot.
void TimingWheel::PickSweepSlot() {
  size_t from = sweep_.ring + 1;
  for (unsigned tried = 0;; ++tried) {
    DELAYD_CHECK(tried <= level_count());
    const Level& level = levels_[sweep_.level];
    const size_t ring = level.slots.empty() ? SlotSet::kNone : level.occupied.FindAtOrAfter(from);
    if (ring != SlotSet::kNone) {
      sweep_.ring = ring;
      sweep_.active = true;
      return;
    }
    sweep_.level = (sweep_.level + 1) % level_count();
    from = 0;
  }
}

void TimingWheel::FinishSweepSlot() const {
  Level& level = levels_[sweep_.level];
  EntryList& rest = level.slots[sweep_.ring];
  chunks_.SpliceFront(sweep_.swept, rest);
  if (rest.empty()) {
    level.occupied.Erase(sweep_.ring);
  }
  sweep_.active = false;
}

// Must be called before a slot is read, so that the slot is whole.
void TimingWheel::EndSweepOf(unsigned level, size_t ring) const {
  if (sweep_.active && sweep_.level == level && sweep_.ring == ring) {
    FinishSweepSlot();
  }
}

}  // namespace delayd::wheel

// Clearing away the entries that cancels and moves leave behind.
//
// A cancel touches only its node; the entry in the slot is recognised as stale later by its tag. So
// that "later" comes whatever the caller does, every few cancels pay for looking at one chunk of a
// roving slot while there are more stale entries than live timers.
#include "base/check.h"
#include "wheel/timing_wheel.h"

namespace delayd::wheel {

namespace {

// One chunk of 31 entries every 8 cancels: about 4 entries looked at for one left behind, so that
// even if all that is met first is live, stale ones stay below 1.7 times the live
// (docs/decisions/0012).
constexpr unsigned kCancelsPerSweep = 8;
constexpr size_t kStaleMin = 256;
constexpr unsigned kSlotsPerSweep = 4;

}  // namespace

void TimingWheel::CountStale() {
  if (++sweep_countdown_ < kCancelsPerSweep) {
    return;
  }
  sweep_countdown_ = 0;
  if (entry_count_ > 2 * live_count_ + kStaleMin) {
    SweepSome();
  }
}

void TimingWheel::SweepSome() {
  unsigned slots_left = kSlotsPerSweep;
  uint32_t entries_left = ChunkPool::kChunkEntries;
  while (slots_left > 0) {
    if (!sweep_.active && !PickSweepSlot()) {
      return;
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
    for (uint32_t i = skip; i < chunk.count; ++i) {
      if (IsLive(chunk.entries[i])) {
        chunks_.Append(sweep_.swept, chunk.entries[i]);
      } else {
        --entry_count_;
      }
    }
    chunks_.Free(chunk.number);
    entries_left -= entries_left < chunk.count ? entries_left : chunk.count;
  }
}

// The next non-empty slot after the last one swept, level by level, round and round.
bool TimingWheel::PickSweepSlot() {
  size_t from = sweep_.ring + 1;
  for (unsigned tried = 0; tried <= level_count(); ++tried) {
    const Level& level = levels_[sweep_.level];
    const size_t ring = level.slots.empty() ? SlotSet::kNone : level.occupied.FindAtOrAfter(from);
    if (ring != SlotSet::kNone) {
      sweep_.ring = ring;
      sweep_.active = true;
      return true;
    }
    sweep_.level = (sweep_.level + 1) % level_count();
    from = 0;
  }
  return false;
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

// Whoever is about to read a slot calls this first, so that the slot is whole.
void TimingWheel::EndSweepOf(unsigned level, size_t ring) const {
  if (sweep_.active && sweep_.level == level && sweep_.ring == ring) {
    FinishSweepSlot();
  }
}

}  // namespace delayd::wheel

// Time passes: due timers come out, slots are sorted or moved down, the next slots are staged.
#include <algorithm>

#include "base/check.h"
#include "wheel/timing_wheel.h"

namespace delayd::wheel {

namespace {

// How many timers ahead of the one being popped nodes are prefetched.
constexpr size_t kPrefetchAhead = 12;

// A slot with at most this many chunks is searched for its earliest timer; for a larger one the
// owner is woken at its first tick.
constexpr uint32_t kSearchChunks = 2;

// Staging moves one chunk for each PopDue that advanced time, plus one for every 16 ticks passed,
// up to 64.
constexpr Tick kTicksPerStagedChunk = 16;
constexpr Tick kStagedChunksMax = 64;

// A sleeping owner is woken this often while a slot is being staged, so that 64 chunks (2000
// entries) move at a time, 8 million in a turn of level 1, instead of all of them when the slot
// begins.
constexpr Tick kStagingTicks = kTicksPerStagedChunk * kStagedChunksMax;

// Up to this many entries are sorted by comparison; counting 1024 ticks would cost more.
constexpr size_t kInsertionSortMax = 32;

}  // namespace

size_t TimingWheel::PopDue(Tick now, std::span<Expired> out) {
  size_t count = PopOverdue(now, out);
  const Tick before = current_;
  while (count < out.size() && current_ <= now) {
    const Tick last = std::min(now, EpochEnd());
    count += PopEpoch(last, out.subspan(count));
    if (count == out.size()) {
      break;
    }
    if (last == now) {
      current_ = now;
      break;
    }
    Advance(std::min(now, NextStop()));
  }
  if (current_ != before) {
    Stage(current_ - before);
  }
  return count;
}

size_t TimingWheel::PopOverdue(Tick now, std::span<Expired> out) {
  size_t count = 0;
  while (count < out.size() && !overdue_.empty() && overdue_.Top().due <= now) {
    const Overdue top = overdue_.Pop();
    out[count++] = Release(top.index, top.due);
  }
  return count;
}

// Pops the contents of the current level-1 slot up to `last`: the sorted run, merged with level 0.
// Level 0 holds what was added since the run was made and therefore comes second within a tick.
size_t TimingWheel::PopEpoch(Tick last, std::span<Expired> out) {
  const Level& ticks = levels_[0];
  size_t count = 0;
  for (;;) {
    const size_t distance = ticks.slots.empty()
                                ? SlotSet::kNone
                                : ticks.occupied.DistanceToNext(ticks.RingOf(current_));
    const bool has_slot = distance != SlotSet::kNone && distance <= last - current_;
    const Tick slot_tick = has_slot ? current_ + distance : last;
    count += PopRun(slot_tick, out.subspan(count));
    if (count == out.size() || !has_slot) {
      return count;
    }
    current_ = slot_tick;
    count += PopSlot(out.subspan(count));
    if (count == out.size()) {
      return count;
    }
  }
}

size_t TimingWheel::PopRun(Tick last, std::span<Expired> out) {
  size_t count = 0;
  size_t position = run_position_;
  const size_t end = run_.size();
  while (position < end && count < out.size()) {
    const Entry entry = run_[position];
    const Tick due = run_base_ | (entry.low() & epoch_mask_);
    if (due > last) {
      break;
    }
    if (position + kPrefetchAhead < end) {
      slab_.Prefetch(run_[position + kPrefetchAhead].index);
    }
    ++position;
    if (IsLive(entry) && IsDueAt(slab_.NodeAt(entry.index), due)) {
      current_ = due;
      out[count++] = Release(entry.index, due);
    }
  }
  entry_count_ -= position - run_position_;
  run_position_ = position;
  return count;
}

// Pops the slot of the current tick. What does not fit into `out` stays; slot_offset_ says where.
size_t TimingWheel::PopSlot(std::span<Expired> out) {
  Level& ticks = levels_[0];
  const size_t ring = ticks.RingOf(current_);
  EndSweepOf(0, ring);
  EntryList& list = ticks.slots[ring];
  size_t count = 0;
  while (!list.empty()) {
    const ChunkPool::Chunk chunk = chunks_.Front(list);
    while (slot_offset_ < chunk.count) {
      if (count == out.size()) {
        return count;
      }
      const Entry entry = chunk.entries[slot_offset_++];
      --entry_count_;
      if (IsLive(entry) && IsDueAt(slab_.NodeAt(entry.index), current_)) {
        out[count++] = Release(entry.index, current_);
      }
    }
    slot_offset_ = 0;
    chunks_.PopFront(list);
    chunks_.Free(chunk.number);
  }
  ticks.occupied.Erase(ring);
  return count;
}

// The version has 8 bits and wraps around; so a timer is taken to be due only if its node says so
// too.
bool TimingWheel::IsDueAt(const TimerNode& node, Tick due) const {
  const uint64_t payload = node.word & kPayloadMask;
  if (KindOf(node.word) == NodeKind::kNear) [[likely]] {
    return payload == (due & kPayloadMask);
  }
  return KindOf(node.word) == NodeKind::kFar && far_due_[payload] == due;
}

Expired TimingWheel::Release(uint32_t index, Tick due) {
  const TimerNode& node = slab_.NodeAt(index);
  if (KindOf(node.word) == NodeKind::kFar) [[unlikely]] {
    far_free_.push_back(static_cast<uint32_t>(node.word & kPayloadMask));
  }
  const Expired expired{node.id, due};
  slab_.Free(index);
  return expired;
}

// The first tick after the current epoch at which a non-empty slot begins.
Tick TimingWheel::NextStop() const {
  Tick stop = kNever;
  for (const Level& level : levels_) {
    if (level.slots.empty()) {
      continue;
    }
    const size_t distance = level.occupied.DistanceToNext(level.RingOf(current_));
    if (distance != SlotSet::kNone) {
      stop = std::min(stop, (level.NumberOf(current_) + distance) << level.shift);
    }
  }
  return stop;
}

// Everything before `tick` has been popped. Slots that begin at or contain `tick` are opened, the
// highest level first, because entries on a higher level were added earlier.
void TimingWheel::Advance(Tick tick) {
  const Tick before = current_;
  if ((tick ^ before) > epoch_mask_) {
    DropRun();
  }
  current_ = tick;
  for (unsigned level = level_count() - 1; level >= 1; --level) {
    const Level& each = levels_[level];
    const Tick number = each.NumberOf(tick);
    if (each.slots.empty() || number == each.NumberOf(before) ||
        !each.occupied.Contains(each.RingOf(tick))) {
      continue;
    }
    if (level == 1) {
      SortIntoRun(number);
    } else {
      MoveSlotDown(level, number);
    }
  }
  if ((tick ^ before) > epoch_mask_) {
    OpenLevels();
  }
}

// Moves a few entries of each level's next slot into the second turn of the level below, so that
// nothing is left to do when the slot begins.
void TimingWheel::Stage(Tick elapsed) {
  bool finished = false;
  for (unsigned level = level_count() - 1; level >= 2; --level) {
    const Level& each = levels_[level];
    if (each.slots.empty()) {
      continue;
    }
    const Tick next = each.NumberOf(current_) + 1;
    const size_t ring = next & (each.slots.size() - 1);
    Tick chunks = std::min(1 + elapsed / kTicksPerStagedChunk, kStagedChunksMax);
    while (chunks > 0 && each.occupied.Contains(ring)) {
      MoveChunkDown(level, next);
      --chunks;
      finished = finished || !each.occupied.Contains(ring);
    }
  }
  if (finished) {
    OpenLevels();
  }
}

Tick TimingWheel::DueOf(Entry entry, const Level& level, Tick slot_number) const {
  if (level.shift <= kEntryLowBits) {
    return (slot_number << level.shift) | (entry.low() & ((Tick{1} << level.shift) - 1));
  }
  return DueOf(slab_.NodeAt(entry.index));
}

void TimingWheel::MoveChunkDown(unsigned level, Tick slot_number) {
  Level& from = levels_[level];
  const size_t ring = slot_number & (from.slots.size() - 1);
  EndSweepOf(level, ring);
  EntryList& list = from.slots[ring];
  if (list.empty()) {
    return;
  }
  const ChunkPool::Chunk chunk = chunks_.Front(list);
  chunks_.PopFront(list);
  chunks_.PrefetchChunk(list.head);
  for (uint32_t i = 0; i < chunk.count; ++i) {
    const Entry entry = chunk.entries[i];
    // On the low levels the entry itself says where it goes, and whether it is stale is checked
    // there.
    if (from.shift > kEntryLowBits && !IsLive(entry)) {
      --entry_count_;
      continue;
    }
    const Tick due = DueOf(entry, from, slot_number);
    if (from.NumberOf(due) != slot_number) [[unlikely]] {
      --entry_count_;  // the version has wrapped around: the node belongs to another timer by now
      continue;
    }
    AppendTo(level - 1, entry, due);
  }
  chunks_.Free(chunk.number);
  if (list.empty()) {
    from.occupied.Erase(ring);
  }
}

void TimingWheel::MoveSlotDown(unsigned level, Tick slot_number) {
  const Level& from = levels_[level];
  while (from.occupied.Contains(slot_number & (from.slots.size() - 1))) {
    MoveChunkDown(level, slot_number);
  }
}

// Turns a level-1 slot that falls due into an array in due order: two sequential passes (count,
// then scatter), stable, without looking at a node. Popping it then fetches nodes well ahead.
void TimingWheel::SortIntoRun(Tick slot_number) {
  Level& from = levels_[1];
  const size_t ring = slot_number & (from.slots.size() - 1);
  EndSweepOf(1, ring);
  EntryList& list = from.slots[ring];
  scratch_.clear();
  while (!list.empty()) {
    const ChunkPool::Chunk chunk = chunks_.Front(list);
    chunks_.PopFront(list);
    chunks_.PrefetchChunk(list.head);
    scratch_.insert(scratch_.end(), chunk.entries, chunk.entries + chunk.count);
    chunks_.Free(chunk.number);
  }
  from.occupied.Erase(ring);
  run_base_ = slot_number << from.shift;
  const auto tick_of = [this](Entry entry) { return entry.low() & epoch_mask_; };
  if (scratch_.size() <= kInsertionSortMax) {
    std::stable_sort(scratch_.begin(), scratch_.end(), [&](Entry a, Entry b) {
      return tick_of(a) < tick_of(b);
    });
    run_.swap(scratch_);
    return;
  }
  std::fill(run_counts_.begin(), run_counts_.end(), 0);
  for (const Entry entry : scratch_) {
    ++run_counts_[tick_of(entry)];
  }
  uint32_t start = 0;
  for (uint32_t& count : run_counts_) {
    start += std::exchange(count, start);
  }
  run_.resize(scratch_.size());
  for (const Entry entry : scratch_) {
    run_[run_counts_[tick_of(entry)]++] = entry;
  }
}

void TimingWheel::DropRun() {
  entry_count_ -= run_.size() - run_position_;
  run_.clear();
  run_position_ = 0;
}

Tick TimingWheel::NextExpiration() const {
  if (empty()) {
    return kNever;
  }
  if (!overdue_.empty()) {
    return overdue_.Top().due;
  }
  // Slots of higher levels begin after the current epoch, so a timer found within it comes first.
  Tick next = NextInEpoch();
  if (next <= EpochEnd()) {
    return next;
  }
  for (unsigned level = 1; level < level_count(); ++level) {
    next = std::min(next, NextInLevel(level));
  }
  return next;
}

// The first live timer in the run or in level 0, whose second turn reaches beyond the epoch.
Tick TimingWheel::NextInEpoch() const {
  while (run_position_ < run_.size() && !IsLive(run_[run_position_])) {
    ++run_position_;
    --entry_count_;
  }
  Tick next = kNever;
  if (run_position_ < run_.size()) {
    next = run_base_ | (run_[run_position_].low() & epoch_mask_);
  }
  return std::min(next, NextInLevel(0));
}

Tick TimingWheel::NextInLevel(unsigned level) const {
  const Level& each = levels_[level];
  if (each.slots.empty()) {
    return kNever;
  }
  for (;;) {
    const size_t distance = each.occupied.DistanceToNext(each.RingOf(current_));
    if (distance == SlotSet::kNone) {
      return kNever;
    }
    const Tick number = each.NumberOf(current_) + distance;
    const size_t ring = number & (each.slots.size() - 1);
    if (PruneFront(level, ring)) {
      return level == 0 ? number : EarliestIn(level, number);
    }
  }
}

// Drops whole chunks of stale entries from the front of a slot. False if nothing of the slot is
// left.
bool TimingWheel::PruneFront(unsigned level, size_t ring) const {
  Level& each = levels_[level];
  EndSweepOf(level, ring);
  EntryList& list = each.slots[ring];
  const bool popping = level == 0 && ring == each.RingOf(current_);
  while (!list.empty()) {
    const ChunkPool::Chunk chunk = chunks_.Front(list);
    const uint32_t skip = popping ? slot_offset_ : 0;
    for (uint32_t i = skip; i < chunk.count; ++i) {
      if (IsLive(chunk.entries[i])) {
        return true;
      }
    }
    entry_count_ -= chunk.count - skip;
    slot_offset_ -= skip;
    chunks_.PopFront(list);
    chunks_.Free(chunk.number);
  }
  each.occupied.Erase(ring);
  return false;
}

// Searches a slot of few entries for its first timer. For a larger slot returns its first tick or,
// if it has to be moved down a level, a tick early enough to have it staged by then.
Tick TimingWheel::EarliestIn(unsigned level, Tick slot_number) const {
  const Level& each = levels_[level];
  const EntryList& list = each.slots[slot_number & (each.slots.size() - 1)];
  const Tick first_tick = slot_number << each.shift;
  Tick earliest = kNever;
  uint32_t chunk_number = list.head;
  for (uint32_t searched = 0; chunk_number != 0; ++searched) {
    if (searched == kSearchChunks) {
      const Tick staging_begins = (slot_number - 1) << each.shift;
      if (level < 2 || first_tick - current_ <= kStagingTicks) {
        return first_tick;
      }
      return std::max(staging_begins, current_ + kStagingTicks);
    }
    const ChunkPool::Chunk chunk = chunks_.ChunkAt(list, chunk_number);
    for (uint32_t i = 0; i < chunk.count; ++i) {
      if (IsLive(chunk.entries[i])) {
        earliest = std::min(earliest, DueOf(chunk.entries[i], each, slot_number));
      }
    }
    chunk_number = chunks_.NextOf(list, chunk_number);
  }
  return earliest;
}

}  // namespace delayd::wheel

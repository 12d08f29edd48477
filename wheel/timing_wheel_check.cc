// Checks what must hold between two calls; and Slots(), for pictures.
#include "base/check.h"
#include "wheel/timing_wheel.h"

namespace delayd::wheel {

void TimingWheel::CheckInvariants() const {
  std::vector<uint8_t> seen(slab_.high_water());
  size_t entries = run_.size() - run_position_;
  for (size_t i = run_position_; i < run_.size(); ++i) {
    const Entry entry = run_[i];
    const Tick due = run_base_ | (entry.low() & epoch_mask_);
    DELAYD_CHECK(i == run_position_ || (run_[i - 1].low() & epoch_mask_) <= (due & epoch_mask_));
    DELAYD_CHECK((due ^ current_) <= epoch_mask_);
    if (IsLive(entry) && IsDueAt(slab_.NodeAt(entry.index), due)) {
      DELAYD_CHECK(due >= current_);
      seen[entry.index] = 1;
    }
  }
  for (unsigned level = 0; level < level_count(); ++level) {
    const Level& each = levels_[level];
    for (size_t ring = 0; ring < each.slots.size(); ++ring) {
      const bool swept_here = sweep_.active && sweep_.level == level && sweep_.ring == ring;
      const bool filled = !each.slots[ring].empty() || swept_here;
      DELAYD_CHECK(each.occupied.Contains(ring) == filled);
      if (filled) {
        // The slot that contains the current tick has been opened; only level 0 keeps its entries.
        DELAYD_CHECK(level == 0 || ring != each.RingOf(current_));
        entries += CheckList(level, ring, each.slots[ring], &seen);
      }
      if (swept_here) {
        entries += CheckList(level, ring, sweep_.swept, &seen);
      }
    }
  }
  DELAYD_CHECK(entries == entry_count_ + slot_offset_);
  overdue_.CheckInvariants();
  overdue_.ForEach([&](const Overdue& overdue) { seen[overdue.index] = 1; });
  CheckNodes(seen);
}

void TimingWheel::CheckNodes(const std::vector<uint8_t>& seen) const {
  size_t live = 0;
  size_t far = 0;
  for (uint32_t index = 0; index < slab_.high_water(); ++index) {
    const TimerNode& node = slab_.NodeAt(index);
    const bool alive = KindOf(node.word) != NodeKind::kFree;
    // Each live timer is filed where its due tick belongs, a free node nowhere.
    DELAYD_CHECK(seen[index] == (alive ? 1U : 0U));
    live += alive ? 1U : 0U;
    far += KindOf(node.word) == NodeKind::kFar ? 1U : 0U;
  }
  DELAYD_CHECK(live == size());
  DELAYD_CHECK(live + slab_.free_count() + slab_.retired_count() == slab_.high_water());
  DELAYD_CHECK(far + far_free_.size() == far_due_.size());
}

size_t TimingWheel::CheckList(unsigned level,
                              size_t ring,
                              const EntryList& list,
                              std::vector<uint8_t>* seen) const {
  const Level& each = levels_[level];
  size_t entries = 0;
  uint32_t chunk_number = list.head;
  while (chunk_number != 0) {
    const ChunkPool::Chunk chunk = chunks_.ChunkAt(list, chunk_number);
    DELAYD_CHECK(chunk.count >= 1);
    DELAYD_CHECK(chunk.count <= ChunkPool::kChunkEntries);
    entries += chunk.count;
    for (uint32_t i = 0; i < chunk.count; ++i) {
      const Entry entry = chunk.entries[i];
      const Tick due = DueOf(slab_.NodeAt(entry.index));
      // Stale, or its version has wrapped around and the node belongs to another timer.
      if (!IsLive(entry) || due < current_ || each.RingOf(due) != ring ||
          each.NumberOf(due) - each.NumberOf(current_) >= each.slots.size() ||
          (due & kEntryLowMask) != entry.low()) {
        continue;
      }
      (*seen)[entry.index] = 1;
    }
    chunk_number = chunks_.NextOf(list, chunk_number);
  }
  return entries;
}

std::vector<TimingWheel::SlotView> TimingWheel::Slots() const {
  std::vector<SlotView> views;
  if (run_position_ < run_.size()) {
    views.push_back({0, run_base_, epoch_mask_ + 1, run_.size() - run_position_});
  }
  for (unsigned level = 0; level < level_count(); ++level) {
    const Level& each = levels_[level];
    const Tick first = each.NumberOf(current_);
    for (size_t ahead = 0; ahead < each.slots.size(); ++ahead) {
      const size_t ring = (first + ahead) & (each.slots.size() - 1);
      if (!each.occupied.Contains(ring)) {
        continue;
      }
      EndSweepOf(level, ring);
      size_t entries = 0;
      const EntryList& list = each.slots[ring];
      for (uint32_t chunk = list.head; chunk != 0; chunk = chunks_.NextOf(list, chunk)) {
        entries += chunks_.ChunkAt(list, chunk).count;
      }
      if (entries > 0) {
        views.push_back({level, (first + ahead) << each.shift, Tick{1} << each.shift, entries});
      }
    }
  }
  return views;
}

}  // namespace delayd::wheel

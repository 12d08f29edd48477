// Adding, cancelling and moving timers. Time passes in timing_wheel_advance.cc, cancelled entries
// are cleared away in timing_wheel_sweep.cc.
#include "wheel/timing_wheel.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace delayd::wheel {

namespace {

constexpr uint64_t kNearTicks = uint64_t{1} << kPayloadBits;

// How many commands ahead Apply prefetches: enough to cover a miss, few enough for the fill
// buffers.
constexpr size_t kPrefetchAhead = 12;

}  // namespace

TimingWheel::TimingWheel(Tick start, WheelOptions options)
    : current_(start), chunks_(options.huge_pages), slab_(options.huge_pages) {
  DELAYD_CHECK(!options.level_bits.empty());
  unsigned shift = 0;
  for (const unsigned bits : options.level_bits) {
    DELAYD_CHECK(bits >= 1);
    DELAYD_CHECK(bits <= 16);
    DELAYD_CHECK(shift < 64);
    Level level;
    level.shift = shift;
    level.bits = bits;
    levels_.push_back(std::move(level));
    shift = std::min(64U, shift + bits);
  }
  unsigned level = 0;
  for (unsigned width = 0; width <= 64; ++width) {
    while (level < level_count() && width > levels_[level].shift + levels_[level].bits) {
      ++level;
    }
    level_of_width_[width] = static_cast<uint8_t>(level);
  }
  epoch_mask_ = (Tick{1} << levels_[0].bits) - 1;
  run_counts_.resize(size_t{1} << levels_[0].bits);
}

TimingWheel::~TimingWheel() = default;
TimingWheel::TimingWheel(TimingWheel&&) noexcept = default;
TimingWheel& TimingWheel::operator=(TimingWheel&&) noexcept = default;

// The lowest level that may hold `due`; level_count() if none reaches so far. A level holds the
// turn it is in and the turn after. The turn after is open to newcomers only when the slot above,
// which holds what came earlier for it, has been staged to the last entry: or first in, first out
// would end.
unsigned TimingWheel::LevelFor(Tick due) const {
  unsigned level = level_of_width_[std::bit_width(due ^ current_)];
  while (level > 0) {
    if (level < level_count()) {
      const Level& above = levels_[level];
      if (above.NumberOf(due) - above.NumberOf(current_) != 1) {
        break;
      }
      if (!above.slots.empty() && above.occupied.Contains(above.RingOf(due))) {
        break;
      }
    } else {
      const Level& top = levels_.back();
      const unsigned shift = top.shift + top.bits;
      if (shift >= 64 || (due >> shift) - (current_ >> shift) != 1) {
        break;
      }
      // A wheel of n ticks takes what is due within n ticks; the ring could hold more at times, but
      // a limit that depends on the moment is no use to a caller.
      if (due - current_ >= Tick{1} << shift) {
        break;
      }
    }
    --level;
  }
  return level;
}

void TimingWheel::AppendTo(unsigned level, Entry entry, Tick due) const {
  Level& target = levels_[level];
  if (target.slots.empty()) [[unlikely]] {
    target.slots.resize(size_t{2} << target.bits);
    target.occupied = SlotSet(target.slots.size());
  }
  const size_t ring = target.RingOf(due);
  if (chunks_.Append(target.slots[ring], entry)) {
    target.occupied.Insert(ring);
  }
}

// Files a node whose generation is set under `due`. `level` is LevelFor(due) unless it is overdue.
void TimingWheel::Enter(uint32_t index, Tick due, unsigned level) {
  TimerNode& node = slab_.NodeAt(index);
  const uint64_t generation = GenerationOf(node.word);
  if (due < current_) [[unlikely]] {
    const auto handle = overdue_.Add({due, overdue_sequence_++, index});
    node.word = MakeWord(generation, NodeKind::kOverdue, handle);
    return;
  }
  if (due - current_ < kNearTicks) [[likely]] {
    node.word = MakeWord(generation, NodeKind::kNear, due & kPayloadMask);
  } else {
    uint32_t far = static_cast<uint32_t>(far_due_.size());
    if (far_free_.empty()) {
      far_due_.push_back(due);
    } else {
      far = far_free_.back();
      far_free_.pop_back();
      far_due_[far] = due;
    }
    node.word = MakeWord(generation, NodeKind::kFar, far);
  }
  ++entry_count_;
  AppendTo(level, MakeEntry(index, slab_.TagAt(index), due), due);
}

// Undoes what Enter did outside the slots; the entry in its slot goes stale with the node's tag.
void TimingWheel::Leave(const TimerNode& node) {
  switch (KindOf(node.word)) {
    case NodeKind::kNear:
      break;
    case NodeKind::kFar:
      far_free_.push_back(static_cast<uint32_t>(node.word & kPayloadMask));
      break;
    case NodeKind::kOverdue:
      overdue_.Remove(static_cast<uint32_t>(node.word & kPayloadMask));
      break;
    case NodeKind::kFree:
      DELAYD_CHECK(false);
  }
}

TimerHandle TimingWheel::Add(Tick due, uint64_t id) {
  const unsigned level = due < current_ ? 0 : LevelFor(due);
  if (level == level_count()) [[unlikely]] {
    return kNoTimer;
  }
  const uint32_t index = slab_.Allocate();
  slab_.NodeAt(index).id = id;
  Enter(index, due, level);
  ++live_count_;
  return MakeHandle(index, GenerationOf(slab_.NodeAt(index).word));
}

bool TimingWheel::Cancel(TimerHandle handle) {
  TimerNode* node = slab_.Find(handle);
  if (node == nullptr) {
    return false;
  }
  const uint32_t index = IndexOf(handle);
  Leave(*node);
  slab_.Free(index);
  --live_count_;
  CountStale();
  return true;
}

bool TimingWheel::Move(TimerHandle handle, Tick due) {
  TimerNode* node = slab_.Find(handle);
  if (node == nullptr) {
    return false;
  }
  const unsigned level = due < current_ ? 0 : LevelFor(due);
  if (level == level_count()) [[unlikely]] {
    return false;
  }
  const uint32_t index = IndexOf(handle);
  Leave(*node);
  ++slab_.TagAt(index);
  Enter(index, due, level);
  CountStale();
  return true;
}

void TimingWheel::Apply(std::span<TimerCommand> commands) {
  uint32_t adds_ahead = 0;  // between this command and the one being prefetched
  for (size_t i = 0; i < commands.size(); ++i) {
    if (i + kPrefetchAhead < commands.size()) {
      const TimerCommand& ahead = commands[i + kPrefetchAhead];
      if (ahead.kind == TimerCommand::Kind::kAdd) {
        slab_.PrefetchFree(adds_ahead++);
      } else {
        slab_.Prefetch(ahead.handle);
      }
    }
    TimerCommand& command = commands[i];
    switch (command.kind) {
      case TimerCommand::Kind::kAdd:
        adds_ahead -= adds_ahead > 0 ? 1 : 0;
        command.handle = Add(command.due, command.id);
        break;
      case TimerCommand::Kind::kCancel:
        command.handle = Cancel(command.handle) ? command.handle : kNoTimer;
        break;
      case TimerCommand::Kind::kMove:
        command.handle = Move(command.handle, command.due) ? command.handle : kNoTimer;
        break;
    }
  }
}

Tick TimingWheel::DueOf(const TimerNode& node) const {
  const uint64_t payload = node.word & kPayloadMask;
  switch (KindOf(node.word)) {
    case NodeKind::kNear:
      // current_ never passes a timer that has not fired, so the distance fits the payload.
      return current_ + ((payload - current_) & kPayloadMask);
    case NodeKind::kFar:
      return far_due_[payload];
    case NodeKind::kOverdue:
      return overdue_.Get(static_cast<uint32_t>(payload)).due;
    case NodeKind::kFree:
      break;
  }
  return kNever;
}

std::optional<Tick> TimingWheel::Due(TimerHandle handle) const {
  const TimerNode* node = slab_.Find(handle);
  return node == nullptr ? std::nullopt : std::optional<Tick>(DueOf(*node));
}

std::optional<uint64_t> TimingWheel::Id(TimerHandle handle) const {
  const TimerNode* node = slab_.Find(handle);
  return node == nullptr ? std::nullopt : std::optional<uint64_t>(node->id);
}

void TimingWheel::Clear() {
  Drain([](uint64_t, Tick) {});
}

void TimingWheel::Drain(const std::function<void(uint64_t id, Tick due)>& visit) {
  for (uint32_t index = 0; index < slab_.high_water(); ++index) {
    TimerNode& node = slab_.NodeAt(index);
    if (KindOf(node.word) != NodeKind::kFree) {
      visit(node.id, DueOf(node));
      slab_.Free(index);
    }
  }
  overdue_.Clear();
  far_due_.clear();
  far_free_.clear();
  live_count_ = 0;
  DropRun();
  for (unsigned level = 0; level < level_count(); ++level) {
    Level& each = levels_[level];
    size_t ring = each.slots.empty() ? SlotSet::kNone : each.occupied.FindAtOrAfter(0);
    for (; ring != SlotSet::kNone; ring = each.occupied.FindAtOrAfter(ring)) {
      EndSweepOf(level, ring);
      while (!each.slots[ring].empty()) {
        const uint32_t chunk = each.slots[ring].head;
        chunks_.PopFront(each.slots[ring]);
        chunks_.Free(chunk);
      }
      each.occupied.Erase(ring);
    }
  }
  entry_count_ = 0;
  slot_offset_ = 0;
}

size_t TimingWheel::memory_bytes() const {
  size_t bytes =
      sizeof(*this) + slab_.memory_bytes() + chunks_.memory_bytes() + overdue_.memory_bytes();
  bytes += (run_.capacity() + scratch_.capacity()) * sizeof(Entry);
  bytes += run_counts_.capacity() * sizeof(uint32_t);
  bytes += far_due_.capacity() * sizeof(Tick) + far_free_.capacity() * sizeof(uint32_t);
  for (const Level& level : levels_) {
    bytes += level.slots.capacity() * sizeof(EntryList) + level.occupied.memory_bytes();
  }
  return bytes;
}

}  // namespace delayd::wheel

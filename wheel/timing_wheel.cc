// Adding, cancelling and moving timers. Popping them is in timing_wheel_advance.cc, removing
// cancelled entries in timing_wheel_sweep.cc.
#include "wheel/timing_wheel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace delayd::wheel {

namespace {

constexpr uint64_t kNearTicks = uint64_t{1} << kPayloadBits;

// How many commands ahead Apply prefetches nodes and the tails of slots: enough to cover a miss,
// few enough for the fill buffers. Measured.
constexpr size_t kNodesAhead = 16;
constexpr size_t kSlotsAhead = 8;

}  // namespace

TimingWheel::TimingWheel(Tick start, WheelOptions options)
    : current_(start), slab_(options.huge_pages) {
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
  reach_ = shift < 64 ? Tick{1} << shift : 0;
  epoch_mask_ = (Tick{1} << levels_[0].bits) - 1;
  run_counts_.resize(size_t{1} << levels_[0].bits);
  open_last_.assign(levels_.size() + 1, kNever);
  OpenLevels();
}

TimingWheel::~TimingWheel() = default;
TimingWheel::TimingWheel(TimingWheel&&) noexcept = default;
TimingWheel& TimingWheel::operator=(TimingWheel&&) noexcept = default;

// Determines which ticks each level accepts: the turn it is in, and the turn after that if the slot
// of the level above that covers it, and those further up, are empty. A timer for that turn that
// arrives while older timers wait in the slot above must join them there, or first in, first out
// would be violated.
//
// Must be called whenever a slot opens or has been staged completely. In between, only a sweep can
// empty a slot above, and then keeping the turn closed is harmless.
void TimingWheel::OpenLevels() {
  for (unsigned level = level_count(); level-- > 0;) {
    const unsigned turn_shift = levels_[level].shift + levels_[level].bits;
    if (turn_shift >= 64) {
      open_last_[level] = kNever;
      continue;
    }
    const Tick turn = current_ >> turn_shift;
    const Tick turn_mask = (Tick{1} << turn_shift) - 1;
    bool next_open = turn < (kNever >> turn_shift);
    if (level + 1 < level_count()) {
      const Level& above = levels_[level + 1];
      const Tick next = (turn + 1) << turn_shift;
      // The turn after may lie in a turn of the level above that is not open either.
      const bool above_open = next <= open_last_[level + 1];
      next_open = next_open && above_open &&
                  (above.slots.empty() || !above.occupied.Contains(above.RingOf(next)));
    }
    open_last_[level] = ((turn + (next_open ? 1 : 0)) << turn_shift) | turn_mask;
  }
}

// A level's slots are made for its first timer. Out of line, so that AppendTo needs no stack.
void TimingWheel::MakeSlots(Level& level) {
  level.slots.resize(size_t{2} << level.bits);
  level.occupied = SlotSet(level.slots.size());
}

// True if the slot needed a new chunk.
bool TimingWheel::AppendTo(unsigned level, Entry entry, Tick due) const {
  Level& target = levels_[level];
  if (target.slots.empty()) [[unlikely]] {
    MakeSlots(target);
  }
  const size_t ring = target.RingOf(due);
  const bool extended = chunks_.Append(target.slots[ring], entry);
  if (extended) [[unlikely]] {
    target.occupied.Insert(ring);
  }
  return extended;
}

// Prefetches the tail that an Add or Move to `due` will append to.
inline void TimingWheel::PrefetchSlot(Tick due) const {
  const unsigned level = due < current_ ? level_count() : LevelFor(due);
  if (level < level_count() && !levels_[level].slots.empty()) {
    chunks_.PrefetchTail(levels_[level].slots[levels_[level].RingOf(due)]);
  }
}

// Files a node under `due`. `level` is LevelFor(due) unless `due` has passed.
inline void TimingWheel::Enter(TimerNode& node, uint32_t index, Tick due, unsigned level) {
  if (due - current_ >= kNearTicks) [[unlikely]] {  // also if due < current_
    EnterRare(node, index, due);
    if (due < current_) {
      return;
    }
  } else {
    node.word = Refiled(node.word, NodeKind::kNear, due & kPayloadMask);
  }
  ++entry_count_;
  if (AppendTo(level, {index, MakeStamp(VersionOf(node.word), due)}, due)) [[unlikely]] {
    SweepIfCrowded();
  }
}

void TimingWheel::EnterRare(TimerNode& node, uint32_t index, Tick due) {
  if (due < current_) {
    const auto handle = overdue_.Add({due, overdue_sequence_++, index});
    node.word = Refiled(node.word, NodeKind::kOverdue, handle);
    return;
  }
  uint32_t far = static_cast<uint32_t>(far_due_.size());
  if (far_free_.empty()) {
    far_due_.push_back(due);
  } else {
    far = far_free_.back();
    far_free_.pop_back();
    far_due_[far] = due;
  }
  node.word = Refiled(node.word, NodeKind::kFar, far);
}

// Undoes what EnterRare did outside the slots; the entry in its slot becomes stale when the node's
// word changes.
void TimingWheel::LeaveRare(uint64_t word) {
  const auto payload = static_cast<uint32_t>(word & kPayloadMask);
  if (KindOf(word) == NodeKind::kFar) {
    far_free_.push_back(payload);
  } else {
    DELAYD_CHECK(KindOf(word) == NodeKind::kOverdue);
    overdue_.Remove(payload);
  }
}

bool TimingWheel::IsLiveFar(uint64_t word, Entry entry) const {
  return KindOf(word) == NodeKind::kFar &&
         MakeStamp(VersionOf(word), far_due_[word & kPayloadMask]) == entry.stamp;
}

TimerHandle TimingWheel::Add(Tick due, uint64_t id) {
  const unsigned level = due < current_ ? 0 : LevelFor(due);
  if (level == level_count()) [[unlikely]] {
    return kNoTimer;
  }
  const uint32_t index = slab_.Allocate();
  TimerNode& node = slab_.NodeAt(index);
  node.id = id;
  Enter(node, index, due, level);
  return MakeHandle(index, GenerationOf(node.word));
}

bool TimingWheel::CancelRare(TimerHandle handle) {
  if (!slab_.Contains(handle)) {
    return false;
  }
  LeaveRare(slab_.NodeAt(IndexOf(handle)).word);
  slab_.Free(IndexOf(handle));
  return true;
}

bool TimingWheel::Move(TimerHandle handle, Tick due) {
  if (!slab_.Contains(handle)) {
    return false;
  }
  const unsigned level = due < current_ ? 0 : LevelFor(due);
  if (level == level_count()) [[unlikely]] {
    return false;
  }
  const uint32_t index = IndexOf(handle);
  TimerNode& node = slab_.NodeAt(index);
  if (KindOf(node.word) != NodeKind::kNear) [[unlikely]] {
    LeaveRare(node.word);
  }
  Enter(node, index, due, level);
  return true;
}

void TimingWheel::Apply(std::span<TimerCommand> commands) {
  using Kind = TimerCommand::Kind;
  const size_t count = commands.size();
  uint32_t adds_ahead = 0;  // between this command and the one whose node is being fetched
  for (size_t i = 0; i < count; ++i) {
    if (i + kNodesAhead < count) {
      const TimerCommand& ahead = commands[i + kNodesAhead];
      if (ahead.kind == Kind::kAdd) {
        slab_.PrefetchFree(adds_ahead++);
      } else {
        slab_.Prefetch(ahead.handle);
      }
    }
    if (i + kSlotsAhead < count && commands[i + kSlotsAhead].kind != Kind::kCancel) {
      PrefetchSlot(commands[i + kSlotsAhead].due);
    }
    TimerCommand& command = commands[i];
    bool done = true;
    switch (command.kind) {
      case Kind::kAdd:
        adds_ahead -= adds_ahead > 0 ? 1 : 0;
        command.handle = Add(command.due, command.id);
        break;
      case Kind::kCancel:
        done = Cancel(command.handle);
        break;
      case Kind::kMove:
        done = Move(command.handle, command.due);
        break;
    }
    if (!done) {
      command.handle = kNoTimer;
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
  if (!slab_.Contains(handle)) {
    return std::nullopt;
  }
  return DueOf(slab_.NodeAt(IndexOf(handle)));
}

TimerHandle TimingWheel::HandleAt(uint32_t index) const {
  if (index >= slab_.high_water() || KindOf(slab_.NodeAt(index).word) == NodeKind::kFree) {
    return kNoTimer;
  }
  return MakeHandle(index, GenerationOf(slab_.NodeAt(index).word));
}

std::optional<uint64_t> TimingWheel::Id(TimerHandle handle) const {
  if (!slab_.Contains(handle)) {
    return std::nullopt;
  }
  return slab_.NodeAt(IndexOf(handle)).id;
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

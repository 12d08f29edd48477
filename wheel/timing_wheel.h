// wheel/timing_wheel.h — hierarchical timing wheel: which timers are due by a given tick.
//
// Units:   ticks (wheel/timer.h); the wheel reads no clock, `now` is an argument. Never early;
//          timers fire in order of due tick, and first in, first out within one tick.
// Errors:  none at run time. For a stale handle the answer is always false or nullopt: a handle's
//          generation is never used twice. Running out of 2^32 timers is a DELAYD_CHECK.
// Threads: one owner. No locks, no clock, no allocation per timer.
// Cost:    Add, Cancel, Move O(1); PopDue O(popped + cascaded + levels) however far `now` jumped;
//          NextExpiration O(levels). About 24.5 bytes per timer. Cancelled ones leave stale entries
//          of 8 bytes; all entries together are at most about 3 per live timer or 1 per node ever
//          used, whichever is more. Memory is kept for reuse, never released.
// Source:  Varghese & Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7, with the
//          expiry queue of non-empty slots of Kafka's purgatory. What was changed and why:
//          docs/decisions/0010-wheel-run-wheel.md.
//
//   TimingWheel wheel(now);
//   TimerHandle handle = wheel.Add(now + 1800'000, order_id);
//   wheel.Cancel(handle);                        // false if it fired already
//   wheel.Move(handle, now + 60'000);            // the handle stays good
//   SleepUntil(wheel.NextExpiration());
//   std::array<Expired, 256> due;
//   while (size_t count = wheel.PopDue(now, due)) { ... }   // fewer than 256: nothing else is due
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "wheel/entry_list.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/slot_set.h"
#include "wheel/timer.h"
#include "wheel/timer_slab.h"

namespace delayd::wheel {

struct WheelOptions {
  // The number of slots of each level as a power of two; level 0 has one tick per slot, a slot of
  // level k covers one turn of level k-1. A level costs nothing until a timer needs it. The default
  // reaches every 64-bit tick: 1024 x 1 ms, 4096 x 1 s, 4096 x 70 min, 4096 x 199 days and on. With
  // fewer levels the wheel refuses what does not fit; {bits} alone is the classical one-level
  // wheel.
  std::vector<unsigned> level_bits = {10, 12, 12, 12, 12, 6};
  // Ask the kernel for 2 MiB pages once the wheel is larger than that.
  bool huge_pages = true;
};

// One command of a turn, for TimingWheel::Apply.
struct TimerCommand {
  enum class Kind : uint8_t { kAdd, kCancel, kMove };

  Kind kind = Kind::kAdd;
  // kCancel, kMove: which timer; set to kNoTimer if there was none. kAdd: set to the new timer.
  TimerHandle handle = kNoTimer;
  Tick due = 0;     // kAdd, kMove
  uint64_t id = 0;  // kAdd
};

// How it works, on a small wheel: level 0 has slots of 1 tick, level 1 of 4 ticks, level 2 of 16.
// Four slots make a turn; the ring of each level is two turns long, the one being served and the
// one after. Timers A to E are due at 1, 5, 8, 10 and 37. [8..11] is the slot of those ticks.
//
//   at tick 0   level 0   [1] A   [5] B        B is in the turn after, ticks 4 to 7
//               level 1   [8..11] C D          unsorted
//               level 2   [32..47] E
//   tick 1, 5   A and B fire. The ticks between cost nothing: the set of non-empty slots says where
//               the next one is.
//   tick 8      [8..11] opens. It is not spread over level 0 but sorted into a run, C before D; a
//               timer added now for tick 9 goes to level 0 and is merged with the run, behind what
//               the run holds for the same tick. C fires, at tick 10 D.
//   tick 16     [32..47] is the next slot of level 2. From now on each PopDue stages a few of its
//               entries: moves them to level 1, whose second turn covers the same ticks, so that
//               at tick 32 there is nothing left to do. E is now in [36..39].
//   tick 36     [36..39] becomes the run; tick 37, E fires.
//
// A PopDue(4000000000) at tick 0 does the same, jumping from non-empty slot to non-empty slot.
// tests/examples/simulate prints this for a live wheel.
class TimingWheel {
 public:
  // The wheel starts at tick `start`: timers due before it are served first, in order of due tick,
  // but at the cost of a heap. Start at the earliest due tick that can occur.
  explicit TimingWheel(Tick start = 0, WheelOptions options = {});
  ~TimingWheel();
  TimingWheel(TimingWheel&&) noexcept;
  TimingWheel& operator=(TimingWheel&&) noexcept;

  // `due` may have passed: the timer then fires at the next PopDue. A timer due at kNever never
  // fires. The ids are the caller's and need not be unique. Returns kNoTimer if the options' levels
  // do not reach `due` (never with the default).
  TimerHandle Add(Tick due, uint64_t id);

  // False if the timer is gone: fired, cancelled or drained.
  //
  // Inline and short, with the rare half elsewhere: the speed of single cancels depends on how many
  // of them fit into the processor's window while each waits for its node.
  bool Cancel(TimerHandle handle) {
    const uint32_t index = IndexOf(handle);
    if (index >= slab_.high_water()) {
      return false;
    }
    TimerNode& node = slab_.NodeAt(index);
    const uint64_t near =
        (static_cast<uint64_t>(handle) >> 32 << 2) | static_cast<uint64_t>(NodeKind::kNear);
    if (node.word >> kKindShift != near) [[unlikely]] {
      return CancelRare(handle);
    }
    slab_.Free(node, index);
    return true;
  }

  // Changes the due tick, earlier or later; the timer goes behind those already due at that tick.
  // False, and nothing changed, if the timer is gone or the levels do not reach `due`.
  bool Move(TimerHandle handle, Tick due);

  // Applies a turn's commands in order, with the same result as one by one, but with their cache
  // misses overlapped: about three times as fast with a million timers. Fills in `handle` as
  // described at TimerCommand.
  void Apply(std::span<TimerCommand> commands);

  // The tick a timer is due at; nullopt if it is gone.
  std::optional<Tick> Due(TimerHandle handle) const;

  // The handle of the timer that has this index now (IndexOf its handle); kNoTimer if none has. For
  // an owner that knows which of its timers are live and stores only half of each handle.
  TimerHandle HandleAt(uint32_t index) const;

  // The id a timer was added with; nullopt if it is gone.
  std::optional<uint64_t> Id(TimerHandle handle) const;

  // Moves timers with due <= now, earliest first, into `out` and returns how many. Fewer than
  // out.size() means that nothing else is due at `now`. A `now` earlier than the last one is
  // allowed: the wheel waits until time has caught up.
  size_t PopDue(Tick now, std::span<Expired> out);

  // The tick at which to call PopDue next: never later than the first live timer's due tick, kNever
  // if no timer is left. Exact within the slot that is being served and for slots of a few entries;
  // otherwise it may be a tick at which a slot has to be sorted or staged (PopDue may then return
  // 0): one in 1024 ticks at most. A cancelled timer is never the reason for such a tick.
  Tick NextExpiration() const;

  // How many timers are live.
  size_t size() const { return slab_.live_count(); }

  bool empty() const { return size() == 0; }

  // The tick served last. Timers due before it go to the overdue heap.
  Tick current_tick() const { return current_; }

  // Cancels all. Handles go stale, memory is kept.
  void Clear();

  // Calls visit(id, due) for every live timer, in no particular order, and clears. `visit` must not
  // call the wheel. (For due order: PopDue with kNever.)
  void Drain(const std::function<void(uint64_t id, Tick due)>& visit);

  // Stops the program if the structure contradicts itself. O(everything), for tests.
  void CheckInvariants() const;

  // Bytes in use by all structures, allocator overhead not included.
  size_t memory_bytes() const;

  // The contents of one slot, for pictures and tests; stale entries are counted.
  struct SlotView {
    unsigned level;
    Tick first_tick;
    uint64_t width;  // ticks
    size_t entries;
  };

  // All non-empty slots, lowest level first. The run of the slot being served appears as a slot of
  // level 0.
  std::vector<SlotView> Slots() const;

 private:
  struct Level {
    unsigned shift = 0;  // log2 of a slot's width
    unsigned bits = 0;   // log2 of the slots in one turn
    // Two turns: the one being served and the one after. Empty until used.
    std::vector<EntryList> slots;
    SlotSet occupied;

    Tick NumberOf(Tick tick) const { return tick >> shift; }

    size_t RingOf(Tick tick) const { return NumberOf(tick) & (slots.size() - 1); }
  };

  // The position of the sweep of stale entries: one slot, whose front part is already compacted
  // into `swept`.
  struct Sweep {
    bool active = false;
    unsigned level = 0;
    size_t ring = 0;
    EntryList swept;
  };

  struct Overdue {
    Tick due;
    uint64_t sequence;
    uint32_t index;
  };

  struct SoonerDue {
    bool operator()(const Overdue& a, const Overdue& b) const {
      return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
    }
  };

  unsigned level_count() const { return static_cast<unsigned>(levels_.size()); }

  // The lowest level that accepts `due`, which is not before current_; level_count() if none does.
  unsigned LevelFor(Tick due) const {
    if (reach_ != 0 && due - current_ >= reach_) [[unlikely]] {
      return level_count();
    }
    unsigned level = 0;
    while (due > open_last_[level]) {
      ++level;
    }
    return level;
  }

  void OpenLevels();
  void PrefetchSlot(Tick due) const;
  void Enter(TimerNode& node, uint32_t index, Tick due, unsigned level);
  void EnterRare(TimerNode& node, uint32_t index, Tick due);
  void LeaveRare(uint64_t word);
  [[gnu::noinline]] bool CancelRare(TimerHandle handle);
  [[gnu::noinline]] static void MakeSlots(Level& level);
  bool AppendTo(unsigned level, Entry entry, Tick due) const;
  Tick DueOf(const TimerNode& node) const;
  Tick DueOf(Entry entry, const Level& level, Tick slot_number) const;

  // Does the entry still describe its node? After 256 changes of the node it may seem to, wrongly,
  // if the node is due at the same tick modulo 2^24: so IsDueAt decides in the end.
  bool IsLive(Entry entry) const {
    const uint64_t word = slab_.NodeAt(entry.index).word;
    if (KindOf(word) != NodeKind::kNear) [[unlikely]] {
      return IsLiveFar(word, entry);
    }
    return MakeStamp(VersionOf(word), word) == entry.stamp;
  }

  bool IsLiveFar(uint64_t word, Entry entry) const;

  size_t PopOverdue(Tick now, std::span<Expired> out);
  size_t PopEpoch(Tick last, std::span<Expired> out);
  size_t PopRun(Tick last, std::span<Expired> out);
  size_t PopSlot(std::span<Expired> out);
  bool IsDueAt(const TimerNode& node, Tick due) const;
  Expired Release(uint32_t index, Tick due);

  Tick EpochEnd() const { return current_ | epoch_mask_; }

  Tick NextStop() const;
  void Advance(Tick tick);
  void Stage(Tick elapsed);
  void MoveChunkDown(unsigned level, Tick slot_number);
  void MoveSlotDown(unsigned level, Tick slot_number);
  void SortIntoRun(Tick slot_number);
  void DropRun();

  Tick NextInEpoch() const;
  Tick NextInLevel(unsigned level) const;
  bool PruneFront(unsigned level, size_t ring) const;
  Tick EarliestIn(unsigned level, Tick slot_number) const;

  void EndSweepOf(unsigned level, size_t ring) const;
  void SweepIfCrowded();
  void SweepSome(uint32_t entries);
  void FetchForSweep(const EntryList& rest) const;
  void PickSweepSlot();
  void FinishSweepSlot() const;

  void CheckNodes(const std::vector<uint8_t>& seen) const;
  size_t CheckList(unsigned level,
                   size_t ring,
                   const EntryList& list,
                   std::vector<uint8_t>* seen) const;

  Tick current_ = 0;
  Tick epoch_mask_ = 0;
  Tick reach_ = 0;  // timers due this many ticks ahead are refused; 0: none are
  // The last tick that each level accepts at the moment; the last element stands for "no level".
  std::vector<Tick> open_last_;

  // NextExpiration drops the cancelled entries that it meets, so that it meets each only once.
  mutable size_t entry_count_ = 0;  // in slots and run, stale ones included
  mutable std::vector<Level> levels_;
  mutable ChunkPool chunks_;
  mutable Sweep sweep_;
  mutable size_t run_position_ = 0;
  // How many entries were popped from the front chunk of the current tick's slot.
  mutable uint32_t slot_offset_ = 0;

  TimerSlab slab_;
  std::vector<Entry> run_;  // entries of the current level-1 slot, by tick
  std::vector<Entry> scratch_;
  std::vector<uint32_t> run_counts_;
  Tick run_base_ = 0;
  std::vector<Tick> far_due_;
  std::vector<uint32_t> far_free_;
  IndexedPriorityQueue<Overdue, SoonerDue> overdue_;
  uint64_t overdue_sequence_ = 0;
};

}  // namespace delayd::wheel

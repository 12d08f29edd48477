// daemon/engine/job_table.h — the jobs that are in memory, 24 bytes each, found by id or by slot.
//
// What:    an entry says where its job is (key_due locates the record), which phase it is in, and
//          how to cancel its timer. Payloads, keys and everything else stay in the store.
// Units:   key_due in milliseconds, as in the store's keys.
// Errors:  none; misuse is a failed check.
// Threads: one owner.
// Cost:    O(1); 24 bytes an entry and 5 to 10 for the index. Slots of removed jobs are reused. The
//          index grows part by part: to rehash 3 million entries at once would take 0.3 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/job.h"
#include "base/limits.h"
#include "base/time.h"
#include "wheel/segmented_array.h"

#include <boost/unordered/unordered_flat_set.hpp>

namespace delayd::engine {

using Slot = uint32_t;

enum class Phase : uint8_t {
  kFree = 0,
  kScheduled,  // handle: the index of its timer in the wheel
  kReady,      // handle: its place in the queue's ready heap
  kLeased,     // handle: its lease in the table of leases
  kDamaged,    // its record cannot be read: it stays where it is and keeps the low-water mark below
               // it
};

class JobEntry {
 public:
  JobEntry() = default;

  JobEntry(JobId id, QueueId queue, WallTime key_due, uint32_t priority, bool plain)
      : id_(ToInt(id) & kIdMask),
        plain_(plain ? 1 : 0),
        queue_high_(ToInt(queue) >> kQueueLowBits & kQueueHighMask),
        queue_low_(ToInt(queue) & kQueueLowMask),
        priority_(priority) {
    set_key_due(key_due);
  }

  JobId id() const { return JobId{id_}; }

  QueueId queue() const {
    return QueueId{static_cast<uint32_t>(queue_high_ << kQueueLowBits | queue_low_)};
  }

  uint32_t priority() const { return priority_; }

  WallTime key_due() const { return WallFromMillis(static_cast<int64_t>(key_due_)); }

  Phase phase() const { return static_cast<Phase>(phase_); }

  // Which wheel holds the timer of a scheduled job.
  bool on_boot_clock() const { return on_boot_clock_ != 0; }

  // storage::IsPlain of its record.
  bool plain() const { return plain_ != 0; }

  void set_phase(Phase phase) { phase_ = static_cast<uint8_t>(phase) & kPhaseMask; }

  void set_on_boot_clock(bool on) { on_boot_clock_ = on ? 1 : 0; }

  void set_key_due(WallTime key_due) {
    key_due_ = static_cast<uint64_t>(ToMillis(key_due)) & kKeyDueMask;
  }

  void set_priority(uint32_t priority) { priority_ = priority; }

 private:
  static constexpr unsigned kIdBits = 53;
  static constexpr unsigned kPhaseBits = 3;
  static constexpr unsigned kKeyDueBits = 44;
  static constexpr unsigned kQueueLowBits = 20;
  static constexpr unsigned kQueueHighBits = 6;
  static constexpr uint64_t kIdMask = (uint64_t{1} << kIdBits) - 1;
  static constexpr uint64_t kPhaseMask = (uint64_t{1} << kPhaseBits) - 1;
  static constexpr uint64_t kKeyDueMask = (uint64_t{1} << kKeyDueBits) - 1;
  static constexpr uint64_t kQueueLowMask = (uint64_t{1} << kQueueLowBits) - 1;
  static constexpr uint64_t kQueueHighMask = (uint64_t{1} << kQueueHighBits) - 1;
  static_assert(limits::kJobIdMax <= kIdMask);
  static_assert(uint64_t{limits::kWallMsMax} <= kKeyDueMask);
  static_assert(limits::kQueueIdMax >> kQueueLowBits <= kQueueHighMask);

  uint64_t id_ : kIdBits = 0;
  uint64_t phase_ : kPhaseBits = 0;
  uint64_t on_boot_clock_ : 1 = 0;
  uint64_t plain_ : 1 = 0;
  uint64_t queue_high_ : kQueueHighBits = 0;
  uint64_t key_due_ : kKeyDueBits = 0;
  uint64_t queue_low_ : kQueueLowBits = 0;
  uint32_t priority_ = 0;

 public:
  // What it stands for depends on the phase.
  uint32_t handle = 0;
};

static_assert(sizeof(JobEntry) == 24);

class JobTable {
 public:
  JobTable();
  JobTable(const JobTable&) = delete;
  JobTable& operator=(const JobTable&) = delete;

  Slot Add(const JobEntry& entry);  // the id must not be there
  void Remove(Slot slot);
  std::optional<Slot> Find(JobId id) const;

  JobEntry& operator[](Slot slot) { return slots_[slot]; }

  const JobEntry& operator[](Slot slot) const { return slots_[slot]; }

  size_t size() const { return size_; }

  // Slots that are or were in use: 0 .. slot_count() - 1; free ones have Phase::kFree.
  Slot slot_count() const { return static_cast<Slot>(slots_.size()); }

  // The index grows part by part.
  static constexpr size_t kParts = 64;

  // Uses bits that decide neither the group nor the low byte within a part. Parts of equal size
  // would hold almost exactly as many jobs each, and grow at the same time after all; so the share
  // of the first part is half of that of the last.
  static size_t PartOf(JobId id) {
    const uint64_t place = Mix(id) >> 14 & 0xffff;
    return (place * (0x40000 - place) >> 26) / 3;
  }

 private:
  struct Hash {
    using is_transparent = void;
    using is_avalanching = void;
    const std::deque<JobEntry>* slots;

    size_t operator()(Slot slot) const { return (*this)((*slots)[slot].id()); }

    // Jobs that came together mostly end together: eight neighbouring ids share a group of the
    // index, so that the first brings it into the cache for the others. The low byte tells the
    // neighbours apart.
    size_t operator()(JobId id) const {
      constexpr uint64_t kWithin = 7;
      const uint64_t mixed = Mix(id);
      return mixed ^ ((mixed >> 32 ^ (ToInt(id) & kWithin)) & 0xff);
    }
  };

  struct Equal {
    using is_transparent = void;
    const std::deque<JobEntry>* slots;

    bool operator()(Slot a, Slot b) const { return a == b; }

    bool operator()(Slot a, JobId b) const { return (*slots)[a].id() == b; }

    bool operator()(JobId a, Slot b) const { return (*slots)[b].id() == a; }
  };

  using Part = boost::unordered_flat_set<Slot, Hash, Equal>;

  // Ids ascend: the multiplication spreads groups of eight over the high bits, which choose the
  // place in a part.
  static uint64_t Mix(JobId id) { return (ToInt(id) >> 3) * 0x9e3779b97f4a7c15; }

  std::deque<JobEntry> slots_;
  wheel::SegmentedArray<Slot> free_;  // a vector that grows would copy: 20 ms for four million
  std::vector<Part> parts_;
  size_t size_ = 0;
};

}  // namespace delayd::engine

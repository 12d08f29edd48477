// daemon/engine/job_table.h — the jobs that are in memory, 32 bytes each, found by id or by slot.
//
// What:    an entry says where its job is (key_due locates the record), which phase it is in, and
// what cancels its timer.
//          Payloads, keys and everything else stay in the store.
// Units:   key_due in milliseconds, as in the store's keys.
// Errors:  none; misuse is a failed check.
// Threads: one owner.
// Cost:    O(1); 32 bytes an entry and about 8 for the index. Slots of removed jobs are used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/job.h"
#include "base/time.h"

#include <boost/unordered/unordered_flat_set.hpp>

namespace delayd::engine {

using Slot = uint32_t;

enum class Phase : uint8_t {
  kFree = 0,
  kScheduled,  // handle: its timer in the wheel
  kReady,      // handle: its place in the queue's ready heap
  kLeased,     // handle: the timer of its lease's end
  kDamaged,    // its record cannot be read: it stays where it is and keeps the low-water mark below
               // it
};

class JobEntry {
 public:
  JobEntry() = default;

  JobEntry(JobId id, QueueId queue, WallTime key_due, uint32_t priority)
      : id_(id),
        due_(static_cast<uint64_t>(ToMillis(key_due))),
        priority_(priority),
        queue_(queue) {}

  JobId id() const { return id_; }

  QueueId queue() const { return queue_; }

  uint32_t priority() const { return priority_; }

  WallTime key_due() const { return WallFromMillis(static_cast<int64_t>(due_ & kDueMask)); }

  Phase phase() const { return static_cast<Phase>(due_ >> kPhaseShift & 0xff); }

  // Which wheel holds the timer of a scheduled job.
  bool on_boot_clock() const { return (due_ >> kBootShift & 1) != 0; }

  uint64_t handle = 0;

  void set_phase(Phase phase) {
    due_ = (due_ & ~(uint64_t{0xff} << kPhaseShift)) | uint64_t{static_cast<uint8_t>(phase)}
                                                           << kPhaseShift;
  }

  void set_on_boot_clock(bool on) {
    due_ = (due_ & ~(uint64_t{1} << kBootShift)) | uint64_t{on} << kBootShift;
  }

  void set_key_due(WallTime key_due) {
    due_ = (due_ & ~kDueMask) | static_cast<uint64_t>(ToMillis(key_due));
  }

  void set_priority(uint32_t priority) { priority_ = priority; }

 private:
  static constexpr int kPhaseShift = 48;
  static constexpr int kBootShift = 56;
  static constexpr uint64_t kDueMask = (uint64_t{1} << kPhaseShift) - 1;

  JobId id_{};
  uint64_t due_ = 0;  // 48 bits of key_due, 8 of phase, 1 of clock
  uint32_t priority_ = 0;
  QueueId queue_{};
};

static_assert(sizeof(JobEntry) == 32);

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

  size_t size() const { return index_.size(); }

  // Slots that are or were in use: 0 .. slot_count() - 1; free ones have Phase::kFree.
  Slot slot_count() const { return static_cast<Slot>(slots_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    const std::deque<JobEntry>* slots;

    size_t operator()(Slot slot) const { return (*this)((*slots)[slot].id()); }

    // Ids ascend: a multiplication spreads them over the high bits that the index looks at.
    size_t operator()(JobId id) const {
      const uint64_t mixed = ToInt(id) * 0x9e3779b97f4a7c15;
      return mixed ^ mixed >> 32;
    }
  };

  struct Equal {
    using is_transparent = void;
    const std::deque<JobEntry>* slots;

    bool operator()(Slot a, Slot b) const { return a == b; }

    bool operator()(Slot a, JobId b) const { return (*slots)[a].id() == b; }

    bool operator()(JobId a, Slot b) const { return (*slots)[b].id() == a; }
  };

  std::deque<JobEntry> slots_;
  std::vector<Slot> free_;
  boost::unordered_flat_set<Slot, Hash, Equal> index_;
};

}  // namespace delayd::engine

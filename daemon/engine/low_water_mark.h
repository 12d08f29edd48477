// daemon/engine/low_water_mark.h — the low-water mark, and what it must stay below: the smallest
// key_due of the jobs that have fired and are not finished, and of those that wait in the boot
// wheel.
//
// What:    below the low-water mark the store holds nothing but tombstones, so no seek may ever go
//          there. FiredKeys has the keys of what has fired: jobs fire in their order, mostly, which
//          is the queue's row. What still waits is bounded by its wheel, and in the boot wheel by
//          its offset too, which BootOffsets has.
// Threads: one owner.
// Cost:    O(1), and O(log n) for one that comes late, amortised; entries of finished jobs go when
//          they come first, and when they outnumber the live ones, a part with each look.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "daemon/engine/job_table.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/timer.h"

namespace delayd::engine {

// Writers go by the mark as decided: nothing is keyed before it any more. Readers begin at the one
// whose batch is committed, as the rows between the two may be there still.
class LowWaterMark {
 public:
  // As the store has it.
  void Restore(WallTime mark) {
    decided_ = mark;
    durable_ = mark;
  }

  // A batch that changes so many jobs is closed: whether it is time to look for the mark again.
  bool IsLookedFor(size_t jobs, size_t jobs_per_mark) {
    jobs_since_ += jobs;
    if (jobs_since_ < jobs_per_mark) {
      return false;
    }
    jobs_since_ = 0;
    return true;
  }

  // Whether that is further than it was: then the batch writes it.
  bool Raise(WallTime mark, uint64_t batch) {
    if (mark <= decided_) {
      return false;
    }
    decided_ = mark;
    underway_.emplace_back(batch, mark);
    return true;
  }

  void Committed(uint64_t batch) {
    while (!underway_.empty() && underway_.front().first <= batch) {
      durable_ = underway_.front().second;
      underway_.pop_front();
    }
  }

  WallTime decided() const { return decided_; }

  WallTime durable() const { return durable_; }

 private:
  WallTime decided_;
  WallTime durable_;
  size_t jobs_since_ = 0;
  std::deque<std::pair<uint64_t, WallTime>> underway_;  // (batch, mark)
};

class FiredKeys {
 public:
  // Another job may have the slot by now. If it has fired under the same key_due, that is a live
  // key all the same.
  struct Key {
    WallTime key_due;
    Slot slot = 0;

    friend bool operator<(const Key& a, const Key& b) { return a.key_due < b.key_due; }
  };

  // What one Min looks at: there may be millions, and everybody waits.
  static constexpr size_t kLooksMax = limits::Bound(4096, 2);
  // Of jobs that have ended so many entries may be among those of as many live ones as there are.
  static constexpr size_t kEndedMax = limits::Bound(1024, 4);

  void Add(WallTime key_due, Slot slot) {
    keys_.Add({key_due, slot});
    if (is_sifting_) {
      SetKept(slot, false);
    }
  }

  // `is_live(key)` tells whether that slot has a job that has fired under that key. `live` is how
  // many jobs have fired. Less than the least live key where more have ended than are looked at:
  // the next ones go on.
  template <typename IsLive>
  std::optional<WallTime> Min(size_t live, const IsLive& is_live) {
    if (!is_sifting_ && keys_.size() > 2 * live + kEndedMax) {
      is_sifting_ = true;
      is_kept_.clear();
    }
    size_t looks = kLooksMax;
    DropEnded(&sifted_, is_live, &looks);
    if (is_sifting_) {
      Sift(is_live, &looks);
    }
    DropEnded(&keys_, is_live, &looks);
    if (sifted_.empty() || keys_.empty()) {
      const Keys& keys = keys_.empty() ? sifted_ : keys_;
      return keys.empty() ? std::nullopt : std::optional(keys.Top().key_due);
    }
    return std::min(sifted_.Top().key_due, keys_.Top().key_due);
  }

  size_t size() const { return keys_.size() + sifted_.size(); }

 private:
  using Keys = wheel::IndexedPriorityQueue<Key>;

  template <typename IsLive>
  static void DropEnded(Keys* keys, const IsLive& is_live, size_t* looks) {
    while (*looks > 0 && !keys->empty() && !is_live(keys->Top())) {
      keys->Pop();
      --*looks;
    }
  }

  // One entry a live key: a job that was given back has fired under the same key again. In their
  // order, and what is added meanwhile comes behind, so that the kept ones stand in a row.
  template <typename IsLive>
  void Sift(const IsLive& is_live, size_t* looks) {
    for (; *looks > 0 && !keys_.empty(); --*looks) {
      const Key key = keys_.Pop();
      if (is_live(key) && !IsKept(key.slot)) {
        SetKept(key.slot, true);
        sifted_.Add(key);
      }
    }
    if (keys_.empty()) {
      keys_ = std::exchange(sifted_, Keys());
      is_sifting_ = false;
    }
  }

  bool IsKept(Slot slot) const { return slot < is_kept_.size() && is_kept_[slot]; }

  void SetKept(Slot slot, bool is_kept) {
    if (slot >= is_kept_.size()) {
      is_kept_.resize(slot + 1);
    }
    is_kept_[slot] = is_kept;
  }

  Keys keys_;
  // While entries of finished jobs are sifted out of keys_, those that stay; and by slot, whether
  // one of its live key did.
  bool is_sifting_ = false;
  Keys sifted_;
  std::vector<bool> is_kept_;
};

// A job in the boot wheel is keyed at its due tick or later, plus the offset of the wall clock when
// it came. Those of a clock that was set forward since must not count for ever: a group of jobs is
// forgotten when nothing in the wheel is as early as the last of them.
class BootOffsets {
 public:
  void Add(Millis offset, wheel::Tick due) {
    young_.least = std::min(young_.least, offset);
    young_.last = std::max(young_.last, due);
  }

  // `next`: nothing in the wheel is due before.
  void Forget(wheel::Tick next) {
    if (old_.last < next) {
      old_ = std::exchange(young_, {});
    }
  }

  // Of the jobs that may be in the wheel; none: no job is.
  std::optional<Millis> Least(wheel::Tick next) const {
    const Millis least = std::min(old_.LeastFrom(next), young_.LeastFrom(next));
    return least == Millis::max() ? std::nullopt : std::optional(least);
  }

 private:
  struct Group {
    Millis least{Millis::max()};
    wheel::Tick last = 0;

    Millis LeastFrom(wheel::Tick next) const { return last < next ? Millis::max() : least; }
  };

  Group old_;  // nothing is added any more
  Group young_;
};

}  // namespace delayd::engine

// daemon/engine/low_water_mark.h — the low-water mark, and what it must stay below: the smallest
// key_due of the jobs that have fired and are not finished, and of those that wait in the boot
// wheel.
//
// What:    below the low-water mark the store holds nothing but tombstones, so no seek may ever go
//          there. FiredKeys has the keys of the jobs that have fired, mostly added in rising order,
//          which its priority queue keeps in a row. A bound for the jobs that still wait follows
//          from their wheel, and in the boot wheel from the clock offsets too, which BootOffsets
//          has.
// Threads: one owner.
// Cost:    amortised O(1), or O(log n) for a key that comes late. Entries of finished jobs go when
//          they get to the top; when they outnumber the live ones, they are sifted out, a part with
//          each Min.
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

// Writers go by the decided mark: nothing is keyed before it any more. Readers begin at the durable
// one, whose batch is committed, as the rows between the two may be there still.
class LowWaterMark {
 public:
  // As the store has it.
  void Restore(WallTime mark) {
    decided_ = mark;
    durable_ = mark;
  }

  // The store has jobs that memory does not know. The mark must not pass them, so it stays where it
  // is.
  void Keep() { is_kept_ = true; }

  // A batch that changes `jobs` jobs is closed: whether it is time to compute the mark again.
  bool IsLookedFor(size_t jobs, size_t jobs_per_mark) {
    jobs_since_ += jobs;
    if (jobs_since_ < jobs_per_mark) {
      return false;
    }
    jobs_since_ = 0;
    return true;
  }

  // Whether this raises the mark; if so, the batch writes it.
  bool Raise(WallTime mark, uint64_t batch) {
    if (is_kept_ || mark <= decided_) {
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
  bool is_kept_ = false;
  size_t jobs_since_ = 0;
  std::deque<std::pair<uint64_t, WallTime>> underway_;  // (batch, mark)
};

class FiredKeys {
 public:
  // Another job may have the slot by now. If that one has fired under the same key_due, the key is
  // live all the same.
  struct Key {
    WallTime key_due;
    Slot slot = 0;

    friend bool operator<(const Key& a, const Key& b) { return a.key_due < b.key_due; }
  };

  // How many entries one Min looks at: there may be millions, and everybody waits.
  static constexpr size_t kLooksMax = limits::Bound(4096, 2);
  // Sifting starts when entries of ended jobs outnumber the live ones by more than this.
  static constexpr size_t kEndedMax = limits::Bound(1024, 4);

  void Add(WallTime key_due, Slot slot) {
    keys_.Add({key_due, slot});
    if (is_sifting_) {
      SetKept(slot, false);
    }
  }

  // The least live key, or less: where more jobs have ended than one call looks at, the next calls
  // go on. `is_live(key)` tells whether the slot has a job that has fired under that key. `live` is
  // how many jobs have fired.
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

  // Keeps one entry for each live key: a job that was given back has fired under the same key
  // again. Keys are taken in their order, and those added meanwhile come behind, so that the kept
  // ones stand in a row.
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
  // While entries of finished jobs are sifted out of keys_: the entries that stay, and by slot,
  // whether one for its live key did.
  bool is_sifting_ = false;
  Keys sifted_;
  std::vector<bool> is_kept_;
};

// A job in the boot wheel is keyed at its due tick plus the offset of the wall clock when it came,
// or later. The offset of a clock that was set forward since must not count for ever: a group of
// jobs is forgotten when nothing in the wheel is as early as the last of them.
class BootOffsets {
 public:
  void Add(Millis offset, wheel::Tick due) {
    young_.least = std::min(young_.least, offset);
    young_.last = std::max(young_.last, due);
  }

  // `next`: no job in the wheel is due before this.
  void Forget(wheel::Tick next) {
    if (old_.last < next) {
      old_ = std::exchange(young_, {});
    }
  }

  // The least offset of the jobs that may be in the wheel; none: there is no job.
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

// daemon/engine/finished_rows.h — where the rows of finished jobs begin, and when the next of them
// are to be forgotten.
//
// What:    they are ordered by when the jobs finished. Below the mark no row is looked for any
//          more: nothing but tombstones is there. Those of batches under way are not seen by a
//          scan yet, so the mark must not pass them.
// Units:   a job finishes on the wall clock; a trim waits on the boot clock.
// Threads: one owner.
// Cost:    O(1); O(n) in the batches under way for the first of their rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/time.h"

namespace delayd::engine {

class FinishedRows {
 public:
  // The mark as the store has it.
  void Restore(WallTime mark) { mark_ = mark; }

  WallTime low_water_mark() const { return mark_; }

  void Pass(WallTime finished) { mark_ = std::max(mark_, finished); }

  // The longest that any queue wants of a finished job, named or not.
  void SetRetention(Millis longest) { retention_ = longest; }

  // What finished up to then is forgotten.
  WallTime RetentionEnd(const Now& now) const { return now.wall - retention_; }

  // A row of the open batch, which has this number.
  void Add(uint64_t batch, WallTime finished, const Now& now) {
    const bool is_first = underway_.empty() || underway_.back().first != batch;
    if (is_first) {
      underway_.emplace_back(batch, finished);
    }
    WallTime& earliest = underway_.back().second;
    // Those before it may lie in the future of a clock that has been put right. Once a batch will
    // do.
    const bool is_earliest = is_first || finished < earliest;
    earliest = std::min(earliest, finished);
    if (!next_trim_ || is_earliest) {
      ScheduleTrim(finished, now);
    }
  }

  void Committed(uint64_t batch) {
    while (!underway_.empty() && underway_.front().first <= batch) {
      underway_.pop_front();
    }
  }

  // Of those that a scan does not see yet.
  std::optional<WallTime> FirstUnderway() const {
    const auto first = std::ranges::min_element(underway_, {}, &Underway::second);
    return first == underway_.end() ? std::nullopt : std::optional(first->second);
  }

  // The earliest that was asked for counts: a trim asks for the next one itself.
  void ScheduleTrim(WallTime oldest_finished,
                    const Now& now,
                    Millis soonest = Millis(limits::kTrimIntervalMsMin)) {
    const Millis until = oldest_finished + retention_ - now.wall;
    const BootTime at = now.boot + std::max(until, soonest);
    next_trim_ = std::min(next_trim_.value_or(at), at);
  }

  // The retention may be shorter than it was.
  void LookAgain(const Now& now) {
    if (next_trim_) {
      next_trim_ = now.boot;
    }
  }

  // Whether its time has come; then it is not scheduled any more.
  bool TakeTrim(const Now& now) {
    const bool is_due = next_trim_ && *next_trim_ <= now.boot;
    if (is_due) {
      next_trim_.reset();
    }
    return is_due;
  }

  // None: nothing is kept of any finished job.
  const std::optional<BootTime>& next_trim() const { return next_trim_; }

 private:
  using Underway = std::pair<uint64_t, WallTime>;  // (batch, its earliest finish)

  WallTime mark_;
  Millis retention_{0};
  std::deque<Underway> underway_;
  std::optional<BootTime> next_trim_;
};

}  // namespace delayd::engine

// daemon/engine/finished_rows.h — where the rows of finished jobs begin, and when the next of them
// are to be forgotten.
//
// What:    the rows are ordered by when the jobs finished. Below the low-water mark no row is
//          looked for any more: nothing but tombstones is there. A scan does not see the rows of
//          batches under way yet, so the mark must not pass them. Within the mark's millisecond a
//          trim goes on behind the row that it took last: where the mark is of a clock that was
//          ahead, all jobs finish in that millisecond until the time has caught up.
// Units:   a job finishes on the wall clock; a trim waits on the boot clock.
// Threads: one owner.
// Cost:    O(1); O(n) in the batches under way for the first of their rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/job.h"
#include "base/limits.h"
#include "base/time.h"
#include "daemon/engine/frontier.h"

namespace delayd::engine {

class FinishedRows {
 public:
  // The mark as the store has it.
  void Restore(WallTime mark) { first_ = {mark, JobId{}}; }

  WallTime low_water_mark() const { return first_.first; }

  // No row lies before this place.
  const TimerPlace& first() const { return first_; }

  void Pass(const TimerPlace& row) {
    first_ = std::max(first_, TimerPlace(row.first, JobId{ToInt(row.second) + 1}));
  }

  // The longest retention of any queue, whether the configuration names it or not.
  void SetRetention(Millis longest) { retention_ = longest; }

  // Jobs that finished up to then are forgotten.
  WallTime RetentionEnd(const Now& now) const { return now.wall - retention_; }

  // Notes a row of the open batch, which has the number `batch`.
  void Add(uint64_t batch, WallTime finished, const Now& now) {
    if (finished == first_.first) {
      first_.second = JobId{};  // it may lie before those of its millisecond that were passed
    }
    const bool is_first = underway_.empty() || underway_.back().first != batch;
    if (is_first) {
      underway_.emplace_back(batch, finished);
    }
    WallTime& earliest = underway_.back().second;
    // The trim may be scheduled for rows dated ahead by a clock that was corrected since, so an
    // earlier row asks for one of its own. Comparing within the batch is enough.
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

  // The first of the rows that a scan does not see yet.
  std::optional<WallTime> FirstUnderway() const {
    const auto first = std::ranges::min_element(underway_, {}, &Underway::second);
    return first == underway_.end() ? std::nullopt : std::optional(first->second);
  }

  // The earliest request counts: each trim asks for the next one itself.
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

  // Whether a trim is due; if so, it is no longer scheduled.
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

  TimerPlace first_{};
  Millis retention_{0};
  std::deque<Underway> underway_;
  std::optional<BootTime> next_trim_;
};

}  // namespace delayd::engine

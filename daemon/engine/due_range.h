// daemon/engine/due_range.h — the range of due times that a list or a bulk change selects.
//
// What:    a range of true due times. A job's row is keyed by its due time, or by the low-water
//          mark of the moment when the row was put, if that was later.
// Threads: values.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace delayd::engine {

struct DueRange {
  std::optional<WallTime> after;   // inclusive
  std::optional<WallTime> before;  // exclusive

  bool Holds(WallTime due) const { return (!after || due >= *after) && (!before || due < *before); }

  // The rows of these jobs are keyed before this; none: no bound.
  std::optional<WallTime> EndOfKeys(WallTime low_water_mark) const {
    if (!before) {
      return std::nullopt;
    }
    return std::max(*before, low_water_mark + Millis(1));
  }
};

// `Filter`: List or JobFilter.
template <typename Filter>
DueRange DueRangeOf(const Filter& filter) {
  return {.after = filter.due_after, .before = filter.due_before};
}

}  // namespace delayd::engine

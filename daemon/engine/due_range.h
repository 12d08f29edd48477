// daemon/engine/due_range.h — the due times that a list or a change of many jobs is about.
//
// What:    a range of true due times. The key of a job's row is its due time or later: the
//          low-water mark of the moment when it was placed, if that was ahead.
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

  // No row of such a job is keyed at or behind this; none: no end.
  std::optional<WallTime> EndOfKeys(WallTime low_water_mark) const {
    if (!before) {
      return std::nullopt;
    }
    return std::max(*before, low_water_mark + Millis(1));
  }
};

// Of a List or a JobFilter.
template <typename Filter>
DueRange DueRangeOf(const Filter& filter) {
  return {.after = filter.due_after, .before = filter.due_before};
}

}  // namespace delayd::engine

// storage/record_row.h — maps a job's index row to the row of its record.
#pragma once

#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {

struct RecordRow {
  Table table;
  FixedKey key;
};

// Not for a finished job, which has no record.
inline RecordRow RowOfRecord(const IndexRecord& place, JobId id) {
  if (place.place == IndexRecord::Place::kDead) {
    return {.table = Table::kDead, .key = DeadKey(place.queue, place.at, id)};
  }
  return {.table = Table::kTimers, .key = TimerKey(place.at, id)};
}

}  // namespace delayd::storage

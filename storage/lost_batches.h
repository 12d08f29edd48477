// storage/lost_batches.h — what can be read from a batch in a log without replaying it. Private to
// the room.
//
// Errors:  none: bytes that are no batch yield nothing.
// Threads: any.
// Source:  RocksDB's write batches, read by RocksDB.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "storage/recovery.h"

namespace delayd::storage {

// The batch number that the batch itself contains.
std::optional<uint64_t> BatchNumberIn(std::string_view record);

// Adds to the report the jobs that a lost batch wrote and ended, and the end of its ids.
void NoteLostBatch(std::string_view record, RecoveryReport* report);

}  // namespace delayd::storage

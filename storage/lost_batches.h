// storage/lost_batches.h — what a batch in a log tells without being replayed. Private to the room.
//
// Errors:  none: what is no batch tells nothing.
// Threads: any.
// Source:  RocksDB's write batches, read by RocksDB.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "storage/recovery.h"

namespace delayd::storage {

// The number that a batch gives itself.
std::optional<uint64_t> BatchNumberIn(std::string_view record);

// The jobs that a lost batch wrote and ended, and the end of its ids, go into the report.
void NoteLostBatch(std::string_view record, RecoveryReport* report);

}  // namespace delayd::storage

// storage/rocks_status.h — RocksDB's outcomes in the house's words. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <rocksdb/status.h>

#include "base/status.h"

namespace delayd::storage {

// `what` says what was tried and on what: "cannot open /var/lib/delayd".
Status FromRocks(const rocksdb::Status& status, std::string_view what);

// The disk is full, or what its owner may have of it: RocksDB knows the former only.
bool IsNoRoom(const rocksdb::Status& status);

// What to do about it.
std::string_view RoomCure(const rocksdb::Status& status);

// At each open for writing 7.8 first tries whether the file system opens CURRENT as its options
// want. It calls an error of that attempt an invalid argument, and one that has passed when it
// looks again a lack of direct I/O, which we do not ask for. Such an outcome is told as the error
// that it was, every other one as it is.
rocksdb::Status WithoutProbe(const rocksdb::Status& status);

// The number in RocksDB's "Missing WAL with log number: 40."
std::optional<uint64_t> MissingLog(const rocksdb::Status& status);

}  // namespace delayd::storage

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

// 7.8 tries at each open for writing whether the file system opens CURRENT as its options want, and
// calls an error of that an invalid argument, and one that has passed a lack of direct I/O, which
// we do not ask for. What it was; every other outcome as it is.
rocksdb::Status WithoutProbe(const rocksdb::Status& status);

// The number in RocksDB's "Missing WAL with log number: 40."
std::optional<uint64_t> MissingLog(const rocksdb::Status& status);

}  // namespace delayd::storage

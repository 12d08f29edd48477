// storage/rocks_status.h — turns RocksDB's statuses into this project's. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <rocksdb/status.h>

#include "base/status.h"

namespace delayd::storage {

// `what` says what was tried and on what: "cannot open /var/lib/delayd".
Status FromRocks(const rocksdb::Status& status, std::string_view what);

// The disk is full, or a quota is used up (which RocksDB itself does not recognise).
bool IsNoRoom(const rocksdb::Status& status);

// What to do about it.
std::string_view RoomCure(const rocksdb::Status& status);

// At each open for writing, RocksDB 7.8 first tries whether the file system can open CURRENT with
// the given options. It reports an error of that attempt as an invalid argument, and an error that
// has passed when it looks again as a lack of direct I/O, which we do not ask for. This function
// turns such a status back into the original error, and leaves every other one as it is.
rocksdb::Status WithoutProbe(const rocksdb::Status& status);

// The number in RocksDB's "Missing WAL with log number: 40."
std::optional<uint64_t> MissingLog(const rocksdb::Status& status);

}  // namespace delayd::storage

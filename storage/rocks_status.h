// storage/rocks_status.h — RocksDB's outcomes in the house's words. Private to the room.
#pragma once

#include <string_view>

#include <rocksdb/status.h>

#include "base/status.h"

namespace delayd::storage {

// `what` says what was tried and on what: "cannot open /var/lib/delayd".
Status FromRocks(const rocksdb::Status& status, std::string_view what);

}  // namespace delayd::storage

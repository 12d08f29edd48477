// storage/cut_view.h — shows files as if they had been cut, without cutting them. Private to the
// room.
//
// What:    through it RocksDB reads its logs and the MANIFEST only up to the end of their whole
//          records: a look at a store shows what a start or a recovery would leave, and changes
//          nothing. File sizes stay the real ones: RocksDB compares them with those that the
//          MANIFEST records for its logs. A recovery that accepts a loss skips that comparison.
// Errors:  those of the file system below.
// Threads: as a file system.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/env.h>

#include "storage/recovery.h"

namespace delayd::storage {

// `base` supplies the file system; null means the real machine. `report` is the one of this look.
// With `accept_loss` a log appears at least as long as the MANIFEST says, however short it was cut;
// a missing log appears as an empty one.
std::unique_ptr<rocksdb::Env> NewCutView(rocksdb::Env* base,
                                         const std::string& directory,
                                         const RecoveryReport& report,
                                         bool accept_loss);

}  // namespace delayd::storage

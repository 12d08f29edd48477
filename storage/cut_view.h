// storage/cut_view.h — files as they would be after a cut that is not made. Private to the room.
//
// What:    RocksDB reads its logs and the MANIFEST through it as far as they are whole: a look at a
//          store shows what a start or a recovery would leave, and changes nothing. Sizes stay
//          those of the files: RocksDB compares them with what the MANIFEST says of its logs, which
//          a recovery that accepts a loss does not ask.
// Errors:  those of the file system below.
// Threads: as a file system.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/env.h>

#include "storage/recovery.h"

namespace delayd::storage {

// `base` is asked for its file system; null is the real machine. `report` is that of the look. With
// `accept_loss` a log is as long as the MANIFEST says, however short it was cut, and there, though
// empty, when it is gone.
std::unique_ptr<rocksdb::Env> NewCutView(rocksdb::Env* base,
                                         const std::string& directory,
                                         const RecoveryReport& report,
                                         bool accept_loss);

}  // namespace delayd::storage

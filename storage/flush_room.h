// storage/flush_room.h — does the disk have enough room for a flush? Private to the room.
//
// What:    a flush that fails ends the store: on a full disk, stored jobs could then no longer be
//          handed out and acked. So every flush that is not necessary asks first.
// Units:   bytes.
// Errors:  a directory that cannot be listed. A disk that cannot be asked counts as having room.
// Threads: any, while commits go on.
// Cost:    a listing of the data directory, and one system call per log.
#pragma once

#include <cstdint>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "base/status.h"

namespace delayd::storage {

// Free space on the disk of `directory`; the largest possible number if it is not known.
uint64_t FreeBytes(rocksdb::FileSystem& disk, const std::string& directory);

struct FlushRoom {
  uint64_t needed = 0;  // an upper bound: a flush writes what the logs hold
  uint64_t free = 0;

  bool is_enough() const { return free >= needed; }
};

StatusOr<FlushRoom> AskFlushRoom(const std::string& data_dir, rocksdb::Env* env);

}  // namespace delayd::storage

// storage/flush_room.h — what the disk has room for: is it enough for a flush? Private to the room.
//
// What:    a flush that fails ends the store: on a disk that is full, jobs that are there would
//          not be handed out and acked any more. What is not necessary asks before.
// Units:   bytes.
// Errors:  a directory that cannot be listed. A disk that cannot be asked has room.
// Threads: any, while commits go on.
// Cost:    a listing of the data directory, a system call a log.
#pragma once

#include <cstdint>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "base/status.h"

namespace delayd::storage {

// On the disk of `directory`.
uint64_t FreeBytes(rocksdb::FileSystem& disk, const std::string& directory);

struct FlushRoom {
  uint64_t needed = 0;  // at most: what is flushed is what the logs hold
  uint64_t free = 0;

  bool is_enough() const { return free >= needed; }
};

StatusOr<FlushRoom> AskFlushRoom(const std::string& data_dir, rocksdb::Env* env);

}  // namespace delayd::storage

#include "storage/flush_room.h"

#include <algorithm>
#include <limits>

#include "storage/disk_room.h"
#include "storage/numbered_files.h"

namespace delayd::storage {
namespace {

// What a flush writes besides the rows: RocksDB's own files.
constexpr uint64_t kFlushBytesMin = uint64_t{1} << 20;

}  // namespace

uint64_t FreeBytes(rocksdb::FileSystem& disk, const std::string& directory) {
  uint64_t free = 0;
  const bool is_known = disk.GetFreeSpace(directory, rocksdb::IOOptions(), &free, nullptr).ok() &&
                        (free != 0 || FreeForAll(directory));
  return is_known ? free : std::numeric_limits<uint64_t>::max();
}

StatusOr<FlushRoom> AskFlushRoom(const std::string& data_dir, rocksdb::Env* env) {
  DELAYD_ASSIGN_OR_RETURN(const uint64_t log_bytes, LogBytes(data_dir));
  FlushRoom room{.needed = kFlushBytesMin + (log_bytes / 1024 + 1) * 1024,  // shown in KiB
                 .free = FreeBytes(*env->GetFileSystem(), data_dir)};
  // When it runs as root, RocksDB also counts the space reserved for root.
  room.free = std::min(room.free, FreeForAll(data_dir).value_or(room.free));
  return room;
}

}  // namespace delayd::storage

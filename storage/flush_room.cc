#include "storage/flush_room.h"

#include <limits>

#include <rocksdb/file_system.h>

#include "storage/recovery.h"

namespace delayd::storage {
namespace {

// RocksDB's own files of a flush, besides the rows.
constexpr uint64_t kFlushBytesMin = uint64_t{1} << 20;

}  // namespace

StatusOr<FlushRoom> AskFlushRoom(const std::string& data_dir, rocksdb::Env* env) {
  DELAYD_ASSIGN_OR_RETURN(const uint64_t log_bytes, LogBytes(data_dir));
  FlushRoom room{.needed = kFlushBytesMin + (log_bytes / 1024 + 1) * 1024};  // told in KiB
  const rocksdb::IOStatus status =
      env->GetFileSystem()->GetFreeSpace(data_dir, rocksdb::IOOptions(), &room.free, nullptr);
  if (!status.ok()) {
    room.free = std::numeric_limits<uint64_t>::max();
  }
  return room;
}

}  // namespace delayd::storage

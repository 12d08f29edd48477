#include "storage/flush_room.h"

#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include <rocksdb/file_system.h>

#include "storage/recovery.h"

namespace delayd::storage {
namespace {

// RocksDB's own files of a flush, besides the rows.
constexpr uint64_t kFlushBytesMin = uint64_t{1} << 20;

}  // namespace

StatusOr<FlushRoom> AskFlushRoom(const std::string& data_dir, rocksdb::Env* env) {
  FlushRoom room{.needed = kFlushBytesMin};
  std::error_code error;
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> logs, LogNames(data_dir));
  for (const std::string& log : logs) {
    const uint64_t bytes = std::filesystem::file_size(data_dir + "/" + log, error);
    room.needed += error ? 0 : bytes;  // it may go meanwhile
  }
  const rocksdb::IOStatus status =
      env->GetFileSystem()->GetFreeSpace(data_dir, rocksdb::IOOptions(), &room.free, nullptr);
  if (!status.ok()) {
    room.free = std::numeric_limits<uint64_t>::max();
  }
  return room;
}

}  // namespace delayd::storage

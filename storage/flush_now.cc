#include "storage/flush_now.h"

#include <cstdint>

namespace delayd::storage {

bool MergesLag(rocksdb::DB* db) {
  using Names = rocksdb::DB::Properties;
  uint64_t rate = 0;
  uint64_t stopped = 0;
  db->GetIntProperty(Names::kActualDelayedWriteRate, &rate);
  db->GetIntProperty(Names::kIsWriteStopped, &stopped);
  return rate != 0 || stopped != 0;
}

rocksdb::Status FlushNow(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;
  return db->Flush(options, families);
}

}  // namespace delayd::storage

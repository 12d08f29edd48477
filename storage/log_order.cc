#include "storage/log_order.h"

#include "base/coding.h"

namespace delayd::storage {

void LogOrder::Add(std::string_view record) {
  ByteReader reader(record);
  const uint64_t first = __builtin_bswap64(reader.U64());
  const uint64_t count = __builtin_bswap32(reader.U32());
  // RocksDB may begin a log with a record without changes, under the number of the last one.
  if (!reader.ok() || count == 0 || wrong_.has_value()) {
    return;
  }
  // Changes that were flushed in one table but not in another are in both tables and log.
  const bool follows =
      next_.has_value() ? first == *next_ : first <= tables_end_.value_or(first) + 1;
  if (!follows) {
    wrong_ = "goes on with change " + std::to_string(first) + " where change " +
             std::to_string(next_.value_or(tables_end_.value_or(0) + 1)) + " is due";
  }
  next_ = first + count;
}

}  // namespace delayd::storage

#include "storage/job_store.h"

namespace delayd::storage {

Status StoreClosed() {
  return FailedPrecondition("the store is closed", "store_closed");
}

StatusOr<std::vector<uint64_t>> JobReader::EstimateRows(Table table,
                                                        std::span<const KeyRange> ranges) const {
  std::vector<uint64_t> rows;
  rows.reserve(ranges.size());
  for (const KeyRange& range : ranges) {
    uint64_t& count = rows.emplace_back(0);
    DELAYD_RETURN_IF_ERROR(
        Scan(table, range.from, range.to, [&](std::string_view, std::string_view) {
          ++count;
          return true;
        }));
  }
  return rows;
}

}  // namespace delayd::storage

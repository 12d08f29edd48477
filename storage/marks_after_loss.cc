#include "storage/marks_after_loss.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {
namespace {

// More starts than the logs of a store can hold: each open flushes what it has replayed.
constexpr uint64_t kLostStartsMax = 1000;

StatusOr<uint64_t> Mark(const JobReader& store, std::string_view key) {
  std::string value;
  const Status got = store.Get(Table::kMeta, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return 0;
  }
  DELAYD_RETURN_IF_ERROR(got);
  return DecodeNumber(key, value);
}

// Of a row's key; nothing for one of no form that the table has, which verify names.
std::optional<JobId> IdOf(Table table, std::string_view key) {
  if (table == Table::kIndex) {
    const auto id = ParseIndexKey(key);
    return id.ok() ? std::optional(*id) : std::nullopt;
  }
  if (table == Table::kDead) {
    const auto parts = ParseDeadKey(key);
    return parts.ok() ? std::optional(parts->id) : std::nullopt;
  }
  const auto parts = ParseTimerKey(key);
  return parts.ok() ? std::optional(parts->id) : std::nullopt;
}

// One above the largest id that is stored.
StatusOr<uint64_t> EndOfIds(const JobReader& store) {
  uint64_t end = 0;
  for (const Table table : {Table::kTimers, Table::kDead, Table::kDone, Table::kIndex}) {
    const auto visit = [&](std::string_view key, std::string_view) {
      if (const auto id = IdOf(table, key)) {
        end = std::max(end, ToInt(*id) + 1);
      }
      return true;
    };
    DELAYD_RETURN_IF_ERROR(store.Scan(table, std::string(1, '\0'), {}, visit));
  }
  return end;
}

// When the first timer is due by its key; nothing without one.
StatusOr<std::optional<WallTime>> FirstTimer(const JobReader& store) {
  std::optional<WallTime> first;
  const auto visit = [&first](std::string_view key, std::string_view) {
    if (const auto parts = ParseTimerKey(key); parts.ok()) {
      first = parts->key_due;
    }
    return !first.has_value();
  };
  DELAYD_RETURN_IF_ERROR(store.Scan(Table::kTimers, std::string(1, '\0'), {}, visit));
  return first;
}

}  // namespace

Status RaiseMarksAfterLoss(const RecoveryReport& report, JobStore* store) {
  Batch batch;
  const auto put = [&batch](std::string_view key, uint64_t number) {
    batch.Put(Table::kMeta, key, EncodeNumber(key, number));
  };
  DELAYD_ASSIGN_OR_RETURN(const uint64_t id_mark, Mark(*store, kIdHighWaterMarkKey));
  DELAYD_ASSIGN_OR_RETURN(const uint64_t ids_end, EndOfIds(*store));
  // And a block, which a batch that cannot be read may have reserved.
  put(kIdHighWaterMarkKey, std::max({id_mark, ids_end, report.lost_ids_end}) + limits::kJobIdBlock);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t epoch, Mark(*store, kEpochKey));
  put(kEpochKey, epoch + kLostStartsMax);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t low_water_mark, Mark(*store, kLowWaterMarkKey));
  DELAYD_ASSIGN_OR_RETURN(const std::optional<WallTime> first, FirstTimer(*store));
  if (first.has_value() && *first < WallFromMillis(static_cast<int64_t>(low_water_mark))) {
    put(kLowWaterMarkKey, static_cast<uint64_t>(ToMillis(*first)));
  }
  return store->Commit(batch);
}

}  // namespace delayd::storage

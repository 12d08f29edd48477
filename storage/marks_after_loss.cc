#include "storage/marks_after_loss.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {
namespace {

// More starts than a store's logs can record: each open flushes what it has replayed.
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

// The id in a row's key; nothing if the key does not have its table's form, which verify reports.
std::optional<JobId> IdOf(Table table, std::string_view key) {
  if (table == Table::kKeys) {
    return std::nullopt;
  }
  if (table == Table::kIndex) {
    const auto id = ParseIndexKey(key);
    return id.ok() ? std::optional(*id) : std::nullopt;
  }
  if (table == Table::kDead || table == Table::kByQueue) {
    const auto parts = ParseByQueueKey(key);
    return parts.ok() ? std::optional(parts->id) : std::nullopt;
  }
  const auto parts = ParseTimerKey(key);
  return parts.ok() ? std::optional(parts->id) : std::nullopt;
}

template <typename Parsed>
std::optional<QueueId> QueueIn(const StatusOr<Parsed>& parsed) {
  return parsed.ok() ? std::optional(parsed->queue) : std::nullopt;
}

std::optional<QueueId> QueueOf(Table table, std::string_view key, std::string_view value) {
  switch (table) {
    case Table::kTimers:
      return QueueIn(DecodeJobRecord(table, key, value));
    case Table::kIndex:
      return QueueIn(DecodeIndexRecord(key, value));
    case Table::kDone:
      return QueueIn(DecodeDoneRecord(key, value));
    case Table::kDead:
    case Table::kByQueue:
      return QueueIn(ParseByQueueKey(key));
    default:
      return QueueIn(ParseClientKey(key));
  }
}

// What the rows show about ids and numbers that were given out.
struct GivenOut {
  uint64_t ids_end = 0;  // one above the largest id
  std::set<QueueId> queues;
  std::optional<WallTime> first_timer;  // from its key; nothing if there is no timer

  void Add(Table table, std::string_view key, std::string_view value) {
    if (const auto id = IdOf(table, key)) {
      ids_end = std::max(ids_end, ToInt(*id) + 1);
    }
    if (const auto queue = QueueOf(table, key, value)) {
      queues.insert(*queue);
    }
    if (table == Table::kTimers && !first_timer) {
      const auto parts = ParseTimerKey(key);
      first_timer = parts.ok() ? std::optional(parts->key_due) : std::nullopt;
    }
  }
};

// Rows behind a damaged block cannot be read, but must not keep the others from being used.
Status Tolerate(Status scanned, std::vector<std::string>* notes) {
  if (scanned.code() != StatusCode::kDataLoss) {
    return scanned;
  }
  notes->push_back("not all rows could be looked at: " + std::string(scanned.message()));
  return OkStatus();
}

StatusOr<GivenOut> LookAtRows(const JobReader& store, std::vector<std::string>* notes) {
  GivenOut given;
  for (const Table table :
       {Table::kTimers, Table::kDead, Table::kDone, Table::kIndex, Table::kByQueue, Table::kKeys}) {
    const auto visit = [&](std::string_view key, std::string_view value) {
      given.Add(table, key, value);
      return true;
    };
    DELAYD_RETURN_IF_ERROR(Tolerate(store.Scan(table, std::string(1, '\0'), {}, visit), notes));
  }
  return given;
}

struct KnownQueues {
  std::set<QueueId> ids;
  std::set<std::string, std::less<>> names;
  bool all = true;  // false: a row that cannot be read may name any number
};

StatusOr<KnownQueues> ReadQueues(const JobReader& store) {
  KnownQueues known;
  const Status scanned = store.Scan(
      Table::kQueues, std::string(1, '\0'), {}, [&](std::string_view name, std::string_view value) {
        const auto record = DecodeQueueRecord(name, value);
        known.all &= record.ok();
        known.names.emplace(name);
        if (record.ok()) {
          known.ids.insert(record->id);
        }
        return true;
      });
  if (scanned.code() == StatusCode::kDataLoss) {
    known.all = false;
    return known;
  }
  DELAYD_RETURN_IF_ERROR(scanned);
  return known;
}

std::string NameFor(QueueId queue, const KnownQueues& known) {
  const std::string name = "recovered-" + std::to_string(ToInt(queue));
  std::string free = name;
  for (int next = 2; known.names.contains(free); ++next) {
    free = name + "-" + std::to_string(next);
  }
  return free;
}

// A number without a name would be given to the next new queue, and with it the old queue's jobs.
Status NameQueues(const GivenOut& given,
                  const JobReader& store,
                  Batch* batch,
                  std::vector<std::string>* notes) {
  DELAYD_ASSIGN_OR_RETURN(const KnownQueues known, ReadQueues(store));
  for (const QueueId queue : given.queues) {
    const std::string number = "queue number " + std::to_string(ToInt(queue));
    if (known.ids.contains(queue)) {
      continue;
    }
    if (!known.all || ToInt(queue) == 0 || ToInt(queue) > limits::kQueueIdMax) {
      notes->push_back(number + " is not known, and was left so: " +
                       (known.all ? "no queue can have it" : "it may be that of a damaged row"));
      continue;
    }
    const std::string name = NameFor(queue, known);
    batch->Put(Table::kQueues, name, EncodeQueueRecord(name, {.id = queue}));
    notes->push_back("the name of " + number + " is lost; what is left of the queue is in " + name);
  }
  return OkStatus();
}

}  // namespace

Status RaiseMarksAfterLoss(const RecoveryReport& report,
                           JobStore* store,
                           std::vector<std::string>* notes) {
  Batch batch;
  const auto put = [&batch](std::string_view key, uint64_t number) {
    batch.Put(Table::kMeta, key, EncodeNumber(key, number));
  };
  DELAYD_ASSIGN_OR_RETURN(const uint64_t id_mark, Mark(*store, kIdHighWaterMarkKey));
  DELAYD_ASSIGN_OR_RETURN(const GivenOut given, LookAtRows(*store, notes));
  // Behind a torn write, a client's payload may look like a lost batch. So no more ids are assumed
  // than can have been given out since then; otherwise none might be left.
  const uint64_t known_end = std::max(id_mark, given.ids_end);
  const uint64_t lost_end =
      std::min(report.lost_ids_end, known_end + kLostStartsMax * limits::kJobIdsASecond);
  // Adds what an unreadable batch may have reserved.
  put(kIdHighWaterMarkKey, std::max(known_end, lost_end) + limits::kJobIdsASecond);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t epoch, Mark(*store, kEpochKey));
  put(kEpochKey, epoch + kLostStartsMax);
  DELAYD_ASSIGN_OR_RETURN(const uint64_t low_water_mark, Mark(*store, kLowWaterMarkKey));
  if (given.first_timer &&
      *given.first_timer < WallFromMillis(static_cast<int64_t>(low_water_mark))) {
    put(kLowWaterMarkKey, static_cast<uint64_t>(ToMillis(*given.first_timer)));
  }
  DELAYD_RETURN_IF_ERROR(NameQueues(given, *store, &batch, notes));
  return store->Commit(batch);
}

}  // namespace delayd::storage

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

// Nothing for a damaged row.
StatusOr<std::optional<uint64_t>> Mark(const JobReader& store,
                                       std::string_view key,
                                       std::vector<std::string>* notes) {
  std::string value;
  const Status got = store.Get(Table::kMeta, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return std::optional<uint64_t>(0);
  }
  DELAYD_RETURN_IF_ERROR(got);
  const auto number = DecodeNumber(key, value);
  if (!number.ok()) {
    notes->push_back(std::string(number.status().message()) + "; it was made anew");
    return std::optional<uint64_t>();
  }
  return std::optional(*number);
}

// A start refuses these marks where they are damaged, and goes on where they are missing.
Status RemoveDamagedMarks(const JobReader& store, Batch* batch, std::vector<std::string>* notes) {
  for (const std::string_view key :
       {kDoneLowWaterMarkKey, kClockKey, kWallOffsetMaxKey, kWallOffsetMinKey}) {
    std::string value;
    const Status got = store.Get(Table::kMeta, key, &value);
    if (got.code() == StatusCode::kNotFound) {
      continue;
    }
    DELAYD_RETURN_IF_ERROR(got);
    const Status read = key == kClockKey ? DecodeClockRecord(key, value).status()
                                         : DecodeNumber(key, value).status();
    if (!read.ok()) {
      batch->Delete(Table::kMeta, key);
      notes->push_back(std::string(read.message()) + "; it was removed");
    }
  }
  return OkStatus();
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
  bool all = true;                      // false: not all rows could be looked at

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
Status Tolerate(Status scanned, bool* all, std::vector<std::string>* notes) {
  if (scanned.code() != StatusCode::kDataLoss) {
    return scanned;
  }
  *all = false;
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
    DELAYD_RETURN_IF_ERROR(
        Tolerate(store.Scan(table, std::string(1, '\0'), {}, visit), &given.all, notes));
  }
  return given;
}

struct KnownQueues {
  std::set<QueueId> ids;
  std::set<std::string, std::less<>> names;
  std::vector<std::string> damaged;  // names in whose rows the number cannot be read
  bool all = true;                   // false: there may be others
};

StatusOr<KnownQueues> ReadQueues(const JobReader& store) {
  KnownQueues known;
  const Status scanned = store.Scan(
      Table::kQueues, std::string(1, '\0'), {}, [&](std::string_view name, std::string_view value) {
        const auto record = DecodeQueueRecord(name, value);
        known.names.emplace(name);
        if (record.ok()) {
          known.ids.insert(record->id);
        } else {
          known.damaged.emplace_back(name);
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

std::string NumberText(QueueId queue) {
  return "queue number " + std::to_string(ToInt(queue));
}

// The numbers that rows name and no queue has.
std::vector<QueueId> NamelessQueues(const GivenOut& given,
                                    const KnownQueues& known,
                                    std::vector<std::string>* notes) {
  std::vector<QueueId> nameless;
  for (const QueueId queue : given.queues) {
    if (known.ids.contains(queue)) {
      continue;
    }
    if (ToInt(queue) == 0 || ToInt(queue) > limits::kQueueIdMax) {
      notes->push_back(NumberText(queue) + " is not known, and was left so: no queue can have it");
      continue;
    }
    nameless.push_back(queue);
  }
  return nameless;
}

// No daemon starts while a queue's row is damaged. If there is one number without a name, it is
// that of the one damaged row; if there is none, nothing is left of these queues.
bool MendQueues(const std::vector<std::string>& damaged,
                const std::vector<QueueId>& nameless,
                Batch* batch,
                std::vector<std::string>* notes) {
  if (nameless.empty()) {
    for (const std::string& name : damaged) {
      batch->Delete(Table::kQueues, name);
      notes->push_back("the row of queue " + name +
                       ", which has no jobs, was damaged; it was removed");
    }
    return true;
  }
  if (damaged.size() != 1 || nameless.size() != 1) {
    return false;
  }
  const std::string& name = damaged.front();
  batch->Put(Table::kQueues, name, EncodeQueueRecord(name, {.id = nameless.front()}));
  notes->push_back("the row of queue " + name + " was damaged; it was made anew with number " +
                   std::to_string(ToInt(nameless.front())) +
                   ", the only one without a name. If the queue was paused, pause it again");
  return true;
}

// A number without a name would be given to the next new queue, and with it the old queue's jobs.
Status NameQueues(const GivenOut& given,
                  const JobReader& store,
                  Batch* batch,
                  std::vector<std::string>* notes) {
  DELAYD_ASSIGN_OR_RETURN(const KnownQueues known, ReadQueues(store));
  const std::vector<QueueId> nameless = NamelessQueues(given, known, notes);
  const bool is_damaged = !known.all || !known.damaged.empty();
  if (is_damaged && known.all && given.all && MendQueues(known.damaged, nameless, batch, notes)) {
    return OkStatus();
  }
  for (const QueueId queue : nameless) {
    if (is_damaged) {
      notes->push_back(NumberText(queue) +
                       " is not known, and was left so: it may be that of a damaged row");
      continue;
    }
    const std::string name = NameFor(queue, known);
    batch->Put(Table::kQueues, name, EncodeQueueRecord(name, {.id = queue}));
    notes->push_back("the name of " + NumberText(queue) +
                     " is lost; what is left of the queue is in " + name);
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
  DELAYD_ASSIGN_OR_RETURN(const auto id_mark, Mark(*store, kIdHighWaterMarkKey, notes));
  DELAYD_ASSIGN_OR_RETURN(const GivenOut given, LookAtRows(*store, notes));
  // Without the mark, the ids of jobs of which no row is left are left out as well.
  const uint64_t mark_end = id_mark.value_or(given.ids_end + limits::kIdsLeftOutMax);
  // Behind a torn write, a client's payload may look like a lost batch. So no more ids are assumed
  // than can have been given out since then; otherwise none might be left.
  const uint64_t known_end = std::max(mark_end, given.ids_end);
  const uint64_t lost_end =
      std::min(report.lost_ids_end, known_end + kLostStartsMax * limits::kJobIdsASecond);
  // Adds what an unreadable batch may have reserved.
  put(kIdHighWaterMarkKey, std::max(known_end, lost_end) + limits::kJobIdsASecond);
  DELAYD_ASSIGN_OR_RETURN(const auto epoch, Mark(*store, kEpochKey, notes));
  put(kEpochKey, epoch.value_or(0) + kLostStartsMax);
  DELAYD_ASSIGN_OR_RETURN(const auto low_water_mark, Mark(*store, kLowWaterMarkKey, notes));
  const auto first_timer = static_cast<uint64_t>(ToMillis(given.first_timer.value_or(WallTime())));
  if (!low_water_mark || (given.first_timer && first_timer < *low_water_mark)) {
    put(kLowWaterMarkKey, first_timer);
  }
  DELAYD_RETURN_IF_ERROR(RemoveDamagedMarks(*store, &batch, notes));
  DELAYD_RETURN_IF_ERROR(NameQueues(given, *store, &batch, notes));
  return store->Commit(batch);
}

}  // namespace delayd::storage

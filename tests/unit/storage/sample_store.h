// A small store in which everything agrees: one job of every kind, as the engine writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {

inline constexpr int64_t kDue = 1'700'000'000'000;
inline constexpr QueueId kOrders{1};
inline constexpr QueueId kMails{2};

inline JobRecord Record(uint64_t id, QueueId queue) {
  JobRecord record;
  record.id = JobId{id};
  record.queue = queue;
  record.due_kind = DueKind::kAbsolute;
  record.due = WallFromMillis(kDue + static_cast<int64_t>(id));
  record.payload = "payload of " + std::to_string(id);
  return record;
}

inline WallTime At(uint64_t id) {
  return WallFromMillis(kDue + static_cast<int64_t>(id));
}

inline void PutIndex(
    Batch* batch, uint64_t id, IndexRecord::Place place, QueueId queue, WallTime at) {
  const std::string key = IndexKey(JobId{id});
  batch->Put(
      Table::kIndex, key, EncodeIndexRecord(key, {.place = place, .queue = queue, .at = at}));
}

inline void PutTimer(Batch* batch, const JobRecord& record) {
  const uint64_t id = ToInt(record.id);
  const std::string key = TimerKey(At(id), record.id);
  batch->Put(Table::kTimers, key, EncodeJobRecord(Table::kTimers, key, record));
  batch->Put(Table::kByQueue, ByQueueKey(record.queue, At(id), record.id), {});
  PutIndex(batch, id, IndexRecord::Place::kTimers, record.queue, At(id));
}

inline void PutNumber(Batch* batch, std::string_view key, uint64_t number) {
  batch->Put(Table::kMeta, key, EncodeNumber(key, number));
}

inline void PutCounts(Batch* batch, QueueId queue, const QueueCounts& counts) {
  const std::string key = QueueCountsKey(queue);
  batch->Put(Table::kMeta, key, EncodeQueueCounts(key, counts));
}

// Job 10: plain. 11: with a key. 12: with a big payload, in the other queue. 13: dead, with a key.
// And a key whose job has finished.
inline Batch WholeStore() {
  Batch batch;
  PutNumber(&batch, kSchemaKey, kSchemaVersion);
  PutNumber(&batch, kLowWaterMarkKey, kDue);
  PutNumber(&batch, kDoneLowWaterMarkKey, kDue - 1000);
  PutNumber(&batch, kIdHighWaterMarkKey, 1000);
  for (const auto& [name, id] : {std::pair("orders", kOrders), std::pair("mails", kMails)}) {
    batch.Put(Table::kQueues, name, EncodeQueueRecord(name, {.id = id}));
  }
  PutTimer(&batch, Record(10, kOrders));
  JobRecord keyed = Record(11, kOrders);
  keyed.key = "order:11";
  PutTimer(&batch, keyed);
  const std::string key = ClientKey(kOrders, "order:11");
  batch.Put(Table::kKeys, key, EncodeKeyRecord(key, {.id = JobId{11}}));
  JobRecord big = Record(12, kMails);
  big.payload.clear();
  big.payload_is_big = true;
  big.payload_bytes = 5000;
  PutTimer(&batch, big);
  batch.Put(Table::kBig,
            IndexKey(JobId{12}),
            EncodeBigPayload(IndexKey(JobId{12}), std::string(5000, 'x')));
  JobRecord dead = Record(13, kOrders);
  dead.key = "order:13";
  const std::string dead_key = DeadKey(kOrders, At(13), JobId{13});
  batch.Put(Table::kDead, dead_key, EncodeJobRecord(Table::kDead, dead_key, dead));
  PutIndex(&batch, 13, IndexRecord::Place::kDead, kOrders, At(13));
  const std::string key13 = ClientKey(kOrders, "order:13");
  batch.Put(Table::kKeys, key13, EncodeKeyRecord(key13, {.id = JobId{13}}));
  const std::string done_key = DoneKey(At(0), JobId{9});
  batch.Put(
      Table::kDone, done_key, EncodeDoneRecord(done_key, {.queue = kOrders, .key = "order:9"}));
  const std::string key9 = ClientKey(kOrders, "order:9");
  batch.Put(Table::kKeys,
            key9,
            EncodeKeyRecord(key9, {.id = JobId{9}, .expiry = At(500), .finished = At(0)}));
  PutCounts(&batch, kOrders, {.pending = 2, .dead = 1, .done = 1});
  PutCounts(&batch, kMails, {.pending = 1, .dead = 0});
  return batch;
}

}  // namespace delayd::storage

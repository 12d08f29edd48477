// A start: memory is rebuilt from what is durable.
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

StatusOr<uint64_t> ReadMetaNumber(const storage::JobReader& store, std::string_view key) {
  std::string value;
  const Status got = store.Get(Table::kMeta, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    return uint64_t{0};
  }
  DELAYD_RETURN_IF_ERROR(got);
  return storage::DecodeNumber(key, value);
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options,
                       const storage::JobReader& store,
                       uint64_t last_batch,
                       const Now& now)
    : options_(options),
      store_(store),
      pending_(store, last_batch),
      now_(now),
      boot_wheel_(static_cast<wheel::Tick>(ToMillis(now.boot))),
      wall_wheel_(static_cast<wheel::Tick>(ToMillis(now.wall))),
      wall_hand_(now.wall) {}

StatusOr<std::unique_ptr<Engine>> Engine::Load(const EngineOptions& options,
                                               const storage::JobReader& store,
                                               const Now& now,
                                               const Progress& progress) {
  DELAYD_ASSIGN_OR_RETURN(const uint64_t last_batch,
                          ReadMetaNumber(store, storage::kBatchNumberKey));
  auto engine = std::make_unique<EngineCore>(options, store, last_batch, now);
  DELAYD_RETURN_IF_ERROR(engine->LoadAll(progress));
  return std::unique_ptr<Engine>(std::move(engine));
}

Status EngineCore::LoadAll(const Progress& progress) {
  DELAYD_RETURN_IF_ERROR(LoadMeta());
  DELAYD_RETURN_IF_ERROR(LoadQueues());
  DELAYD_RETURN_IF_ERROR(LoadTimers(progress));
  DELAYD_RETURN_IF_ERROR(CheckCounts());
  DELAYD_RETURN_IF_ERROR(pending_.Scan(Table::kDone,
                                       storage::DoneKey(done_low_water_mark_, JobId{}),
                                       {},
                                       [this](std::string_view key, std::string_view) {
                                         const auto parts = storage::ParseDoneKey(key);
                                         ScheduleTrim(parts.ok() ? parts->key_due : now_.wall);
                                         return false;
                                       }));
  // Tokens of earlier runs are stale from the moment this is durable.
  pending_.Put(Table::kMeta, storage::kEpochKey, storage::EncodeNumber(storage::kEpochKey, epoch_));
  return OkStatus();
}

Status EngineCore::LoadMeta() {
  DELAYD_ASSIGN_OR_RETURN(const uint64_t mark, ReadMetaNumber(store_, storage::kLowWaterMarkKey));
  DELAYD_ASSIGN_OR_RETURN(const uint64_t done_mark,
                          ReadMetaNumber(store_, storage::kDoneLowWaterMarkKey));
  low_water_mark_ = WallFromMillis(static_cast<int64_t>(mark));
  durable_low_water_mark_ = low_water_mark_;
  done_low_water_mark_ = WallFromMillis(static_cast<int64_t>(done_mark));
  DELAYD_ASSIGN_OR_RETURN(id_high_water_mark_,
                          ReadMetaNumber(store_, storage::kIdHighWaterMarkKey));
  id_high_water_mark_ = std::max<uint64_t>(id_high_water_mark_, 1);
  written_id_high_water_mark_ = id_high_water_mark_;
  // What is left of the block is not used again: some of it may have been given out.
  next_id_ = id_high_water_mark_;
  DELAYD_ASSIGN_OR_RETURN(epoch_, ReadMetaNumber(store_, storage::kEpochKey));
  ++epoch_;
  // A kernel that does not tell its boots apart: then no boot clock but this run's own is trusted.
  boot_id_ = options_.boot_id != 0 ? options_.boot_id : epoch_ | uint64_t{1} << 63;
  return OkStatus();
}

Status EngineCore::LoadQueues() {
  Status failed;
  DELAYD_RETURN_IF_ERROR(
      store_.Scan(Table::kQueues, {}, {}, [&](std::string_view name, std::string_view value) {
        const auto record = storage::DecodeQueueRecord(name, value);
        failed = record.ok() ? queues_.Restore(record->id, name) : record.status();
        return failed.ok();
      }));
  DELAYD_RETURN_IF_ERROR(failed);
  queues_.ForEach([&](Queue& queue) {
    const std::string key = storage::QueueCountsKey(queue.id);
    std::string value;
    const Status got = store_.Get(Table::kMeta, key, &value);
    const auto counts = got.ok() ? storage::DecodeQueueCounts(key, value)
                        : got.code() == StatusCode::kNotFound
                            ? StatusOr<storage::QueueCounts>(storage::QueueCounts())
                            : StatusOr<storage::QueueCounts>(got);
    if (counts.ok()) {
      queue.counts = *counts;
    } else {
      failed = counts.status();
    }
  });
  return failed;
}

Status EngineCore::LoadTimer(std::string_view key, std::string_view value) {
  DELAYD_ASSIGN_OR_RETURN(const auto parts, storage::ParseTimerKey(key));
  DELAYD_ASSIGN_OR_RETURN(const storage::TimerHead head, storage::DecodeTimerHead(key, value));
  if (!queues_.Has(head.queue)) {
    return DataLoss("job " + std::to_string(ToInt(parts.id)) + " is in queue number " +
                    std::to_string(ToInt(head.queue)) +
                    ", which is not known; run 'delayctl verify'");
  }
  JobEntry entry(parts.id, head.queue, parts.key_due, head.priority);
  entry.set_phase(Phase::kScheduled);
  const Slot slot = jobs_.Add(entry);
  Place(slot, head.due_kind, head.due, head.boot_id, head.boot_due);
  ++queues_[head.queue].loaded;
  return OkStatus();
}

Status EngineCore::LoadTimers(const Progress& progress) {
  std::string from = storage::TimerKey(low_water_mark_, JobId{});
  // A fresh scan for each page: a long-lived iterator would pin files and memtables.
  for (bool more = true; more;) {
    Status failed;
    size_t rows = 0;
    more = false;
    std::string last;
    DELAYD_RETURN_IF_ERROR(
        store_.Scan(Table::kTimers, from, {}, [&](std::string_view key, std::string_view value) {
          if (rows++ == limits::kLoadPageRows) {
            more = true;
            return false;
          }
          last.assign(key);
          failed = LoadTimer(key, value);
          return failed.ok();
        }));
    DELAYD_RETURN_IF_ERROR(failed);
    // The least key behind the last one.
    from = last + '\0';
    if (progress) {
      progress(jobs_.size());
    }
  }
  return OkStatus();
}

Status EngineCore::CheckCounts() {
  Status failed;
  queues_.ForEach([&](Queue& queue) {
    if (queue.loaded != queue.counts.pending) {
      failed = DataLoss("queue " + queue.name + " has " + std::to_string(queue.loaded) +
                        " pending jobs and its counter says " +
                        std::to_string(queue.counts.pending) + "; run 'delayctl verify'");
    }
  });
  return failed;
}

}  // namespace delayd::engine

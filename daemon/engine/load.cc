// A start: memory is rebuilt from what is durable.
#include "base/crash_point.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/other_life.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// How many pages of jobs that are not due yet a start loads before it serves; the others are loaded
// while it serves.
constexpr size_t kPagesAtStart = limits::Bound(8, 1);

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
      advanced_to_(now),
      key_retention_(now),
      clock_note_(now),
      boot_wheel_(BootTick(now.exact_boot())),
      lease_wheel_(BootTick(now.exact_boot())),
      wall_wheel_(WallTick(now.wall)) {
  NoteRetentions();
}

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
  DELAYD_RETURN_IF_ERROR(LoadUsers());
  DELAYD_RETURN_IF_ERROR(LoadWindow(progress));
  DELAYD_RETURN_IF_ERROR(CheckCounts());
  DELAYD_RETURN_IF_ERROR(pending_.Scan(Table::kDone,
                                       storage::DoneKey(finished_rows_.low_water_mark(), JobId{}),
                                       {},
                                       [this](std::string_view key, std::string_view) {
                                         const auto parts = storage::ParseDoneKey(key);
                                         finished_rows_.ScheduleTrim(
                                             parts.ok() ? parts->key_due : now_.wall, now_);
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
  DELAYD_ASSIGN_OR_RETURN(const uint64_t id_mark,
                          ReadMetaNumber(store_, storage::kIdHighWaterMarkKey));
  low_water_mark_.Restore(WallFromMillis(static_cast<int64_t>(mark)));
  finished_rows_.Restore(WallFromMillis(static_cast<int64_t>(done_mark)));
  DELAYD_ASSIGN_OR_RETURN(const uint64_t last_epoch, ReadMetaNumber(store_, storage::kEpochKey));
  const WallTime shown = ShownAtStart(now_.wall, options_.machine_wall);
  epoch_ = EpochAfter(last_epoch, shown);
  // A kernel may not tell its boots apart: then only this run's own boot clock is trusted.
  boot_id_ = options_.boot_id != 0 ? options_.boot_id : epoch_ | uint64_t{1} << 63;
  uint64_t ids_left_out = 0;
  std::string clock;
  const Status got = store_.Get(Table::kMeta, storage::kClockKey, &clock);
  if (got.ok()) {
    DELAYD_ASSIGN_OR_RETURN(const auto last, storage::DecodeClockRecord(storage::kClockKey, clock));
    // Within a boot the believed clock accounts for all the time that has passed.
    ids_left_out = IdsSince(last.wall, last.boot_id == boot_id_ ? now_.wall : shown);
    clock_note_.Restore(last.wall);
    if (last.boot_id == boot_id_) {
      DELAYD_ASSIGN_OR_RETURN(const uint64_t most,
                              ReadMetaNumber(store_, storage::kWallOffsetMaxKey));
      // An older program did not write it: 0 is then less than any real offset.
      DELAYD_ASSIGN_OR_RETURN(const uint64_t least,
                              ReadMetaNumber(store_, storage::kWallOffsetMinKey));
      wall_offsets_.Restore(Millis(static_cast<int64_t>(least)),
                            Millis(static_cast<int64_t>(most)));
    }
  } else if (got.code() != StatusCode::kNotFound) {
    return got;
  }
  job_ids_.Restore(id_mark, ids_left_out);
  return OkStatus();
}

// Loads the counts of the known queues. Returns, in rising order, the numbers of unknown queues
// that have jobs. A queue is forgotten together with its counts, so where counts are left the row
// with its name was lost, and a new queue of that number would take its jobs.
StatusOr<std::vector<QueueId>> EngineCore::LoadCounts() {
  std::vector<QueueId> lost;
  Status failed;
  const auto take = [&](std::string_view key, std::string_view value) {
    const StatusOr<QueueId> queue = storage::ParseQueueCountsKey(key);
    if (!queue.ok() || ToInt(*queue) > limits::kQueueIdMax) {
      return true;  // no queue's: 'delayctl verify' names it
    }
    const auto counts = storage::DecodeQueueCounts(key, value);
    if (queues_.Has(*queue)) {
      failed = counts.status();
      if (failed.ok()) {
        queues_.Restore(&queues_[*queue], *counts);
      }
    } else if (!counts.ok() || !counts->IsEmpty()) {
      lost.push_back(*queue);
      if (!counts.ok() || counts->pending > 0) {
        low_water_mark_.Keep();
      }
      incidents_.push_back(DataLoss(
          "queue number " + std::to_string(ToInt(*queue)) +
              " is not known, and has jobs; they are left alone. Run 'delayctl verify', and, "
              "where rows were lost, 'delayctl recover --accept-loss', which names the queue anew",
          "damaged"));
    }
    return failed.ok();
  };
  DELAYD_RETURN_IF_ERROR(
      store_.Scan(Table::kMeta, storage::kQueueCountsPrefix, storage::kQueueCountsEnd, take));
  DELAYD_RETURN_IF_ERROR(failed);
  return lost;
}

Status EngineCore::LoadQueues() {
  Status failed;
  DELAYD_RETURN_IF_ERROR(
      store_.Scan(Table::kQueues, {}, {}, [&](std::string_view name, std::string_view value) {
        const auto record = storage::DecodeQueueRecord(name, value);
        failed = record.ok() ? queues_.Restore(record->id, name) : record.status();
        if (failed.ok() && record->pause) {
          RestorePause(queues_[record->id], *record->pause);
        }
        return failed.ok();
      }));
  DELAYD_RETURN_IF_ERROR(failed);
  queues_.ForEach([&](Queue& queue) {
    ApplySettings(queue);
    queue.counts.done.reset();  // unknown until its row is read
  });
  DELAYD_ASSIGN_OR_RETURN(std::vector<QueueId> lost, LoadCounts());
  queues_.CollectFree(std::move(lost));
  queues_.ForEach([&](Queue& queue) { NoteEmpty(queue); });
  newly_empty_ = 0;  // ForgetQueues takes a few in each batch
  return OkStatus();
}

Status EngineCore::LoadTimer(const storage::TimerKeyParts& parts,
                             std::string_view key,
                             std::string_view value,
                             Overdue overdue) {
  const StatusOr<storage::TimerHead> read = storage::DecodeTimerHead(key, value);
  if (!read.ok()) {
    return LoadDamaged(parts, read.status());
  }
  const storage::TimerHead& head = *read;
  if (const Status known = queues_.CheckKnown(head.queue, parts.id); !known.ok()) {
    // LoadCounts has told of a lost queue; its jobs are left alone.
    return queues_.IsLost(head.queue) ? OkStatus() : known;
  }
  if (jobs_.Find(parts.id)) {
    return OkStatus();  // leased, or due when it came: in memory already
  }
  JobEntry entry(parts.id, head.queue, parts.key_due, head.priority, head.plain);
  if (IsLeftBehind(entry)) {
    return OkStatus();  // the queue lags behind, and is loaded by itself
  }
  entry.set_phase(Phase::kScheduled);
  Place(jobs_.Add(entry), DueOf(head), overdue);
  return OkStatus();
}

// The record does not tell its queue, and its row in the index does. Where that is no help either,
// the counts of no queue would fit the jobs: the answer is `why`.
Status EngineCore::LoadDamaged(const storage::TimerKeyParts& parts, const Status& why) {
  const storage::FixedKey key = storage::IndexKey(parts.id);
  std::string row;
  const Status got = pending_.Get(Table::kIndex, key, &row);
  if (IsReadFailure(got)) {
    return got;
  }
  const auto index = got.ok() ? storage::DecodeIndexRecord(key, row) : got;
  if (!index.ok() || index->place != storage::IndexRecord::Place::kTimers ||
      index->at != parts.key_due || !queues_.Has(index->queue)) {
    return why;
  }
  JobEntry entry(parts.id, index->queue, parts.key_due, limits::kPriorityDefault, /*plain=*/false);
  if (jobs_.Find(parts.id) || IsLeftBehind(entry)) {
    return OkStatus();  // as in LoadTimer
  }
  entry.set_phase(Phase::kDamaged);
  fired_.Add(parts.key_due, jobs_.Add(entry));
  NoteDamaged(queues_[index->queue], why);
  return OkStatus();
}

// A row of a batch under way, which this engine itself has made.
void EngineCore::LoadOwn(const storage::TimerKeyParts& parts,
                         std::string_view key,
                         std::string_view value,
                         Overdue overdue) {
  const Status loaded = LoadTimer(parts, key, value, overdue);
  DELAYD_CHECK(loaded.ok());
}

Status EngineCore::LoadWindow(const Progress& progress) {
  frontier_ = Frontier(low_water_mark_.decided(), JobId{});
  const WallTime target = LatestKeyOfNow() + options_.horizon;
  // The rest is loaded while requests are served already.
  for (; frontier_ < Frontier(target, JobId{}) && HasRoom() &&
         pages_behind_ < (IsBehind() ? limits::kLoadPagesBehindMax : kPagesAtStart);
       ++pages_behind_) {
    DELAYD_RETURN_IF_ERROR(LoadPage(target, Overdue::kReadyAtOnce));
    DELAYD_CRASH_POINT("load/page");
    if (progress) {
      progress(jobs_.size());
    }
  }
  loading_ = frontier_ < Frontier(target, JobId{});
  return OkStatus();
}

// With every timer in memory, the counters can be checked against them. Otherwise 'delayctl verify'
// does that.
Status EngineCore::CheckCounts() {
  const bool all = FirstOnDisk() == kNothingFar;
  Status failed;
  queues_.ForEach([&](Queue& queue) {
    const uint64_t loaded = queue.held + queue.damaged;
    if (loaded > queue.counts.pending || (all && loaded != queue.counts.pending)) {
      failed = DataLoss("queue " + queue.name + " has " + std::to_string(loaded) +
                        " pending jobs and its counter says " +
                        std::to_string(queue.counts.pending) + "; run 'delayctl verify'");
    }
  });
  return failed;
}

}  // namespace delayd::engine

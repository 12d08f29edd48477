#include "storage/verify.h"

#include <set>
#include <utility>

#include "storage/verify_tables.h"

namespace delayd::storage {
namespace {

class Verifier {
 public:
  Verifier(const JobReader& store, const VerifyProgress& progress)
      : store_(store), findings_(progress) {}

  StatusOr<VerifyReport> Run() {
    DELAYD_RETURN_IF_ERROR(ReadMeta());
    DELAYD_RETURN_IF_ERROR(ReadQueues());
    DELAYD_RETURN_IF_ERROR(ReadJobs(Table::kTimers));
    DELAYD_RETURN_IF_ERROR(ReadJobs(Table::kDead));
    DELAYD_RETURN_IF_ERROR(ReadIndex());
    DELAYD_RETURN_IF_ERROR(ReadByQueue());
    DELAYD_RETURN_IF_ERROR(ReadBig());
    DELAYD_RETURN_IF_ERROR(ReadKeys());
    DELAYD_RETURN_IF_ERROR(ReadDone());
    const uint64_t rows = findings_.report.rows;
    CompareCounts();
    CompareUserJobs();
    PairCheck check(store_, !jobs_unread_ && !users_unread_, &findings_);
    DELAYD_RETURN_IF_ERROR(NameJobsWithoutRows(&check));
    DELAYD_RETURN_IF_ERROR(NameRowsWithoutJobs(&check));
    findings_.report.rows = rows;  // rows that were read twice count once
    return std::move(findings_.report);
  }

 private:
  using RowVisitor = std::function<void(std::string_view key, std::string_view value)>;

  // Two sides of one agreement, as tallies.
  struct Pair {
    Tally of_jobs;
    Tally of_rows;

    bool agrees() const { return of_jobs == of_rows; }
  };

  // Scans a whole table. Damage ends the scan of this table and is a finding; other errors end the
  // whole verification.
  Status ForEach(Table table, const RowVisitor& visit) {
    // Not from the low-water mark: rows below it are what we look for.
    const std::string from(1, '\0');
    const Status status = store_.Scan(table, from, {}, [&](auto key, auto value) {
      visit(key, value);
      return findings_.Row(table);
    });
    if (findings_.stopped()) {
      return Unavailable("verify was stopped before it had read everything", "stopped");
    }
    if (status.code() == StatusCode::kDataLoss) {
      findings_.AddUnread(table, status);
      jobs_unread_ |= table == Table::kTimers || table == Table::kDead;
      meta_unread_ |= table == Table::kMeta;
      queues_unread_ |= table == Table::kQueues;
      done_unread_ |= table == Table::kDone;
      return OkStatus();
    }
    return status;
  }

  void Damage(Table table, const Status& status) { findings_.Add(table, status.message()); }

  Status ReadMeta() {
    return ForEach(Table::kMeta, [this](std::string_view key, std::string_view value) {
      if (key.starts_with(kQueueCountsPrefix)) {
        const auto queue = ParseQueueCountsKey(key);
        const auto counts = DecodeQueueCounts(key, value);
        if (!queue.ok()) {
          Damage(Table::kMeta, queue.status());
        } else if (!counts.ok()) {
          damaged_counts_[*queue] = counts.status().message();
        } else {
          stored_counts_[*queue] = *counts;
        }
        return;
      }
      if (key == kClockKey) {
        const auto clock = DecodeClockRecord(key, value);
        if (!clock.ok()) {
          Damage(Table::kMeta, clock.status());
        }
        return;
      }
      const auto number = DecodeNumber(key, value);
      if (!number.ok() && key.starts_with(kUserJobsPrefix)) {
        user_jobs_[std::string(UserOfKey(key))].damage = number.status().message();
      } else if (!number.ok()) {
        Damage(Table::kMeta, number.status());
        id_mark_unread_ |= key == kIdHighWaterMarkKey;
      } else if (key == kLowWaterMarkKey) {
        low_water_mark_ = WallFromMillis(static_cast<int64_t>(*number));
      } else if (key == kDoneLowWaterMarkKey) {
        done_low_water_mark_ = WallFromMillis(static_cast<int64_t>(*number));
      } else if (key == kIdHighWaterMarkKey) {
        id_high_water_mark_ = *number;
      } else if (key.starts_with(kUserJobsPrefix)) {
        user_jobs_[std::string(UserOfKey(key))].stored = *number;
      }
    });
  }

  Status ReadQueues() {
    return ForEach(Table::kQueues, [this](std::string_view name, std::string_view value) {
      const auto record = DecodeQueueRecord(name, value);
      if (!record.ok()) {
        Damage(Table::kQueues, record.status());
        queues_unread_ = true;
      } else if (!queues_.emplace(record->id, name).second) {
        findings_.Add(
            Table::kQueues,
            "queue " + std::string(name) + ": it has the number of queue " + queues_[record->id]);
      }
    });
  }

  Status ReadJobs(Table table) {
    return ForEach(table, [this, table](std::string_view key, std::string_view value) {
      const auto job = DecodeJobRow(table, key, value);
      if (!job.ok()) {
        Damage(table, job.status());
        CountDamaged(table, key, value);
        return;
      }
      CheckJob(*job);
      TallyJob(*job);
    });
  }

  void CountJob(Table table, QueueId queue) {
    if (table == Table::kTimers) {
      ++found_counts_[queue].pending;
      ++findings_.report.pending;
    } else {
      ++found_counts_[queue].dead;
      ++findings_.report.dead;
    }
  }

  // A start reads only a timer's head and does not verify its checksum: if the counts left this job
  // out, it would refuse the store. Whose job it was remains unknown.
  void CountDamaged(Table table, std::string_view key, std::string_view value) {
    users_unread_ = true;
    const std::optional<QueueId> queue = QueueOfDamaged(table, key, value);
    if (queue && queues_.contains(*queue)) {
      CountJob(table, *queue);
    } else {
      jobs_unread_ = true;
    }
  }

  static std::optional<QueueId> QueueOfDamaged(Table table,
                                               std::string_view key,
                                               std::string_view value) {
    if (table == Table::kDead) {
      const auto parts = ParseDeadKey(key);
      return parts.ok() ? std::optional(parts->queue) : std::nullopt;
    }
    const auto head = DecodeTimerHead(key, value);
    return head.ok() ? std::optional(head->queue) : std::nullopt;
  }

  void CheckJob(const JobRow& job) {
    const std::string name = JobName(job.record.id);
    CountJob(job.table, job.record.queue);
    if (job.table == Table::kTimers) {
      if (job.at < low_water_mark_) {
        findings_.Add(Table::kTimers,
                      name + ": it lies below the low-water mark, where no start looks");
      }
    } else {
      const auto parts = ParseDeadKey(job.key);
      if (parts.ok() && parts->queue != job.record.queue) {
        findings_.Add(Table::kDead, name + ": it lies in another queue than its record says");
      }
    }
    if (!job.record.user.empty()) {
      ++user_jobs_[job.record.user].found;
    }
    CheckGivenOut(job.table, name, job.record.queue, job.record.id);
  }

  void CheckGivenOut(Table table, const std::string& name, QueueId queue, JobId id) {
    if (!queues_.contains(queue) && !queues_unread_) {
      findings_.Add(table,
                    name + ": queue number " + std::to_string(ToInt(queue)) + " is not known");
    }
    const bool is_mark_known = id_high_water_mark_ > 0 || !(meta_unread_ || id_mark_unread_);
    if (is_mark_known && ToInt(id) >= id_high_water_mark_) {
      findings_.Add(Table::kMeta,
                    name + ": its id lies above id_hwm " + std::to_string(id_high_water_mark_) +
                        " and would be given out again");
    }
  }

  void TallyJob(const JobRow& job) {
    const std::string index_key = IndexKey(job.record.id);
    index_.of_jobs.Add(index_key + EncodeIndexRecord(index_key, job.Place()));
    if (job.table == Table::kTimers) {
      by_queue_.of_jobs.Add(ByQueueKey(job.record.queue, job.at, job.record.id));
    }
    if (job.record.payload_is_big) {
      big_.of_jobs.Add(index_key + std::to_string(job.record.payload_bytes));
    }
    if (!job.record.key.empty()) {
      keys_.of_jobs.Add(ClientKey(job.record.queue, job.record.key) + index_key);
    }
  }

  Status ReadIndex() {
    return ForEach(Table::kIndex, [this](std::string_view key, std::string_view value) {
      // Compares the raw bytes: damage shows as a difference and is named later.
      index_.of_rows.Add(std::string(key) + std::string(value));
    });
  }

  Status ReadByQueue() {
    return ForEach(Table::kByQueue, [this](std::string_view key, std::string_view) {
      const auto parts = ParseByQueueKey(key);
      if (!parts.ok()) {
        Damage(Table::kByQueue, parts.status());
      }
      by_queue_.of_rows.Add(key);
    });
  }

  Status ReadBig() {
    return ForEach(Table::kBig, [this](std::string_view key, std::string_view value) {
      const auto payload = DecodeBigPayload(key, value);
      if (!payload.ok()) {
        Damage(Table::kBig, payload.status());
        return;
      }
      big_.of_rows.Add(std::string(key) + std::to_string(payload->size()));
    });
  }

  Status ReadKeys() {
    return ForEach(Table::kKeys, [this](std::string_view key, std::string_view value) {
      const auto record = DecodeKeyRecord(key, value);
      if (!record.ok()) {
        Damage(Table::kKeys, record.status());
        return;
      }
      if (!record->finished.has_value()) {
        keys_.of_rows.Add(std::string(key).append(IndexKey(record->id)));
        return;
      }
      std::string done;
      const Status got = store_.Get(Table::kDone, DoneKey(*record->finished, record->id), &done);
      if (got.code() == StatusCode::kNotFound) {
        findings_.AddSuperfluous(Table::kKeys,
                                 "key " + std::string(ParseClientKey(key)->key) + " of finished " +
                                     JobName(record->id) +
                                     ": its row in done is missing, so it would stay for ever",
                                 key);
      } else if (!got.ok()) {
        findings_.AddUnread(Table::kDone, got);
      }
    });
  }

  Status ReadDone() {
    return ForEach(Table::kDone, [this](std::string_view key, std::string_view value) {
      const auto parts = ParseDoneKey(key);
      const auto record = DecodeDoneRecord(key, value);
      if (!parts.ok() || !record.ok()) {
        Damage(Table::kDone, record.status());
        done_unread_ = true;
        return;
      }
      if (record->kept_until) {
        const std::string index_key = IndexKey(parts->id);
        index_.of_jobs.Add(index_key +
                           EncodeIndexRecord(index_key, PlaceOfDone(*parts, record->queue)));
      }
      const std::string name = "finished " + JobName(parts->id);
      if (parts->key_due < done_low_water_mark_) {
        findings_.AddSuperfluous(
            Table::kDone, name + ": it lies below done_lwm, where nothing looks", key);
      } else {
        CheckGivenOut(Table::kDone, name, record->queue, parts->id);
        ++*found_counts_[record->queue].done;
      }
    });
  }

  static std::string TextOf(const QueueCounts& counts) {
    return std::to_string(counts.pending) + " pending, " + std::to_string(counts.dead) +
           " dead and " + (counts.done ? std::to_string(*counts.done) : "uncounted") +
           " finished jobs";
  }

  void CompareCounts() {
    std::set<QueueId> queues;
    for (const auto& [queue, counts] : stored_counts_) {
      queues.insert(queue);
    }
    for (const auto& [queue, counts] : found_counts_) {
      queues.insert(queue);
    }
    for (const auto& [queue, damage] : damaged_counts_) {
      queues.insert(queue);
    }
    for (const QueueId queue : queues) {
      const auto damaged = damaged_counts_.find(queue);
      const bool is_damaged = damaged != damaged_counts_.end();
      if (meta_unread_ && !is_damaged && !stored_counts_.contains(queue)) {
        continue;
      }
      const auto row = stored_counts_.find(queue);
      const QueueCounts stored = row != stored_counts_.end() ? row->second : QueueCounts();
      QueueCounts found = found_counts_[queue];
      if (done_unread_) {
        found.done = row != stored_counts_.end() ? stored.done : std::nullopt;
      }
      if (!is_damaged && stored.pending == found.pending && stored.dead == found.dead &&
          (!stored.done || !found.done || *stored.done == *found.done)) {
        continue;
      }
      const std::string key = QueueCountsKey(queue);
      const auto name = queues_.find(queue);
      const bool is_known = queues_unread_ || name != queues_.end();
      const std::string what =
          is_damaged
              ? damaged->second + "; its queue holds "
              : "queue " + (name != queues_.end() ? name->second : std::to_string(ToInt(queue))) +
                    ": it counts " + TextOf(stored) + ", and holds ";
      AddCount(jobs_unread_,
               what + TextOf(found),
               key,
               is_known || !found.IsEmpty() ? EncodeQueueCounts(key, found) : std::string());
    }
  }

  void CompareUserJobs() {
    for (const auto& [user, jobs] : user_jobs_) {
      if (jobs.damage.empty() &&
          (jobs.stored == jobs.found || (meta_unread_ && jobs.stored == 0))) {
        continue;
      }
      const std::string key = UserJobsKey(user);
      const std::string what =
          jobs.damage.empty()
              ? "user " + user + ": " + std::to_string(jobs.stored) + " jobs are counted, and "
              : jobs.damage + "; ";
      AddCount(jobs_unread_ || users_unread_,
               what + std::to_string(jobs.found) + " are stored",
               key,
               jobs.found != 0 ? EncodeNumber(key, jobs.found) : std::string());
    }
  }

  // Unreadable jobs may be the whole difference, and a start still counts them. Without a value the
  // row is superfluous.
  void AddCount(bool unread, std::string what, std::string_view key, std::string_view value) {
    if (unread) {
      findings_.Add(Table::kMeta, what + ", besides those that cannot be read");
    } else if (value.empty()) {
      findings_.AddSuperfluous(Table::kMeta, std::move(what), key);
    } else {
      findings_.AddRepairable(Table::kMeta, std::move(what), key, value);
    }
  }

  Status NameJobsWithoutRows(PairCheck* check) {
    if (index_.agrees() && by_queue_.agrees() && big_.agrees() && keys_.agrees()) {
      return OkStatus();
    }
    for (const Table table : {Table::kTimers, Table::kDead}) {
      DELAYD_RETURN_IF_ERROR(ForEach(table, [&](std::string_view key, std::string_view value) {
        const auto job = DecodeJobRow(table, key, value);
        if (!job.ok()) {
          return;  // named by the first scan
        }
        if (!index_.agrees()) {
          check->IndexOfJob(*job);
        }
        if (!by_queue_.agrees() && table == Table::kTimers) {
          check->ByQueueOfJob(*job);
        }
        if (!big_.agrees() && job->record.payload_is_big) {
          check->BigOfJob(*job);
        }
        if (!keys_.agrees() && !job->record.key.empty()) {
          check->KeyOfJob(*job);
        }
      }));
    }
    return index_.agrees() ? OkStatus() : NameDoneWithoutIndex(check);
  }

  Status NameDoneWithoutIndex(PairCheck* check) {
    return ForEach(Table::kDone, [&](std::string_view key, std::string_view value) {
      const auto parts = ParseDoneKey(key);
      const auto record = DecodeDoneRecord(key, value);
      if (parts.ok() && record.ok() && record->kept_until) {
        check->IndexOfDone(*parts, record->queue);
      }
    });
  }

  Status NameRowsWithoutJobs(PairCheck* check) {
    if (!index_.agrees()) {
      DELAYD_RETURN_IF_ERROR(
          ForEach(Table::kIndex, [&](auto key, auto value) { check->JobOfIndex(key, value); }));
    }
    if (!by_queue_.agrees()) {
      DELAYD_RETURN_IF_ERROR(
          ForEach(Table::kByQueue, [&](auto key, auto) { check->JobOfByQueue(key); }));
    }
    if (!big_.agrees()) {
      DELAYD_RETURN_IF_ERROR(ForEach(Table::kBig, [&](auto key, auto) { check->JobOfBig(key); }));
    }
    if (!keys_.agrees()) {
      DELAYD_RETURN_IF_ERROR(ForEach(Table::kKeys, [&](auto key, auto value) {
        const auto record = DecodeKeyRecord(key, value);
        if (record.ok() && !record->finished.has_value()) {
          check->JobOfKey(key, *record);
        }
      }));
    }
    return OkStatus();
  }

  const JobReader& store_;
  Findings findings_;
  WallTime low_water_mark_;
  WallTime done_low_water_mark_;
  uint64_t id_high_water_mark_ = 0;
  bool id_mark_unread_ = false;
  std::map<QueueId, std::string> queues_;
  std::map<QueueId, QueueCounts> stored_counts_;
  std::map<QueueId, QueueCounts> found_counts_;
  std::map<QueueId, std::string> damaged_counts_;  // what is wrong with each row

  struct UserJobs {
    uint64_t stored = 0;
    uint64_t found = 0;
    std::string damage;  // of the stored row; empty: none
  };

  std::map<std::string, UserJobs> user_jobs_;
  bool jobs_unread_ = false;   // some jobs could not be counted for any queue
  bool users_unread_ = false;  // some jobs could not be counted for any user
  bool done_unread_ = false;   // some finished jobs could not be counted for any queue
  // If set, nothing can be said about a row that was not found: it may be among the unreadable
  // ones.
  bool meta_unread_ = false;
  bool queues_unread_ = false;
  Pair index_;
  Pair by_queue_;
  Pair big_;
  Pair keys_;
};

}  // namespace

StatusOr<VerifyReport> VerifyStore(const JobReader& store, const VerifyProgress& progress) {
  return Verifier(store, progress).Run();
}

uint64_t EstimateRows(const JobReader& store) {
  uint64_t rows = 0;
  const auto count = [&rows](std::string_view key, std::string_view value) {
    if (const auto counts = DecodeQueueCounts(key, value); counts.ok()) {
      // Timer, index and by_queue; dead or done, and index.
      rows += counts->pending * 3 + (counts->dead + counts->done.value_or(0)) * 2;
    }
    return true;
  };
  const Status scanned = store.Scan(Table::kMeta, kQueueCountsPrefix, kQueueCountsEnd, count);
  return scanned.ok() ? rows : 0;
}

}  // namespace delayd::storage

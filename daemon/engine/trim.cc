// Finished jobs whose retention has passed are forgotten.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// Rows of kDone up to a time, as many as one step of a trim takes.
struct FinishedPage {
  struct Row {
    storage::TimerKeyParts parts;
    std::string key;
    std::string value;
  };

  std::vector<Row> rows;
  std::vector<Status> damaged;   // of malformed keys, and of what lies behind the last row
  std::optional<WallTime> next;  // of the row behind them
};

// How long to wait before the next step when there is more than one page: less when the rows are
// far behind their time, as more jobs finish then than are forgotten.
Millis PauseOfTrim(Millis behind) {
  return Millis(behind > Millis(limits::kTrimBehindMs) ? limits::kTrimPauseBehindMs
                                                       : limits::kTrimPauseMs);
}

StatusOr<FinishedPage> ReadFinished(const storage::JobReader& store,
                                    const TimerPlace& from,
                                    WallTime end) {
  FinishedPage page;
  const auto take = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseDoneKey(key);
    const bool is_full = page.rows.size() + page.damaged.size() == limits::kTrimRowsMax;
    if (is_full || (parts.ok() && parts->key_due > end)) {
      page.next = parts.ok() ? parts->key_due : end;
    } else if (parts.ok()) {
      page.rows.push_back({*parts, std::string(key), std::string(value)});
    } else {
      page.damaged.push_back(parts.status());
    }
    return !page.next;
  };
  Status scanned = store.Scan(Table::kDone, storage::DoneKey(from.first, from.second), {}, take);
  if (scanned.code() == StatusCode::kDataLoss) {
    page.damaged.push_back(std::move(scanned));
    return page;
  }
  DELAYD_RETURN_IF_ERROR(scanned);
  return page;
}

}  // namespace

Status EngineCore::TrimFinished() {
  WallTime end = finished_rows_.RetentionEnd(now_);
  // The mark must not pass a row that is not durable yet: after a step back of the wall clock it
  // may lie before durable rows. It is trimmed when a scan can see it.
  std::optional<WallTime> next = finished_rows_.FirstUnderway();
  if (next) {
    end = std::min(end, *next - Millis(1));
  }
  DELAYD_ASSIGN_OR_RETURN(FinishedPage page, ReadFinished(pending_, finished_rows_.first(), end));
  // Damaged rows stay for 'delayctl verify', and do not stop the trim.
  std::ranges::move(page.damaged, std::back_inserter(incidents_));
  size_t forgotten = 0;
  for (const auto& [parts, key, value] : page.rows) {
    if (pending_.IsChanging(Table::kDone, key)) {
      continue;
    }
    finished_rows_.Pass({parts.key_due, parts.id});
    const StatusOr<storage::DoneRecord> done = storage::DecodeDoneRecord(key, value);
    if (!done.ok()) {
      incidents_.push_back(done.status());
      continue;
    }
    const Status forgot = ForgetFinished(parts.id, key, *done);
    if (forgot.code() == StatusCode::kDataLoss) {
      incidents_.push_back(forgot);
    } else {
      DELAYD_RETURN_IF_ERROR(forgot);
    }
    ++forgotten;
  }
  if (!page.rows.empty()) {
    const auto mark = static_cast<uint64_t>(ToMillis(finished_rows_.low_water_mark()));
    pending_.Put(Table::kMeta,
                 storage::kDoneLowWaterMarkKey,
                 storage::EncodeNumber(storage::kDoneLowWaterMarkKey, mark));
  }
  if (page.next) {
    next = std::min(next.value_or(*page.next), *page.next);
  }
  if (next) {
    const bool more = page.next && *page.next <= end && forgotten > 0;
    finished_rows_.ScheduleTrim(
        *next, now_, more ? PauseOfTrim(end - *page.next) : Millis(limits::kTrimIntervalMsMin));
  }
  return OkStatus();
}

// Deletes the rows of the job, and its key unless that belongs to a later job by now. `key` is of
// kDone.
Status EngineCore::ForgetFinished(JobId id, std::string_view key, const storage::DoneRecord& done) {
  pending_.Delete(Table::kDone, key);
  if (queues_.Has(done.queue)) {
    ChangeDoneCount(queues_[done.queue], -1);
  }
  ++open_jobs_;
  if (done.kept_until) {
    pending_.Delete(Table::kIndex, storage::IndexKey(id));
  }
  if (done.key.empty()) {
    return OkStatus();
  }
  const std::string client_key = storage::ClientKey(done.queue, done.key);
  std::string row;
  const Status got = pending_.Get(Table::kKeys, client_key, &row);
  if (got.code() == StatusCode::kNotFound) {
    return OkStatus();
  }
  DELAYD_RETURN_IF_ERROR(got);
  const StatusOr<storage::KeyRecord> record = storage::DecodeKeyRecord(client_key, row);
  if (!record.ok()) {
    // The error itself names the client's key, which is not for the log.
    incidents_.push_back(
        DataLoss("job " + std::to_string(ToInt(id)) +
                     ": the row of its key is damaged, and is left alone; 'delayctl "
                     "verify' names it",
                 "damaged"));
  } else if (record->id == id && record->finished) {
    pending_.Delete(Table::kKeys, client_key);
  }
  return OkStatus();
}

}  // namespace delayd::engine

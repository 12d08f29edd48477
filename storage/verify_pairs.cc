// Names the rows on which two tables disagree.
#include <utility>

#include "base/coding.h"
#include "storage/record_row.h"
#include "storage/verify_tables.h"

namespace delayd::storage {
namespace {

std::string PlaceName(const IndexRecord& place) {
  const std::string_view table = place.place == IndexRecord::Place::kTimers ? "timers"
                                 : place.place == IndexRecord::Place::kDead ? "dead"
                                                                            : "done";
  return std::string(table) + " of queue number " + std::to_string(ToInt(place.queue)) + " at " +
         std::to_string(ToMillis(place.at));
}

// Do both lead to the same record?
bool SamePlace(const IndexRecord& a, const IndexRecord& b) {
  return a.place == b.place && a.queue == b.queue && a.at == b.at;
}

std::string KeyName(std::string_view client_key) {
  const auto parts = ParseClientKey(client_key);
  return parts.ok() ? "key " + std::string(parts->key) + " in queue number " +
                          std::to_string(ToInt(parts->queue))
                    : std::string("a key");
}

}  // namespace

void Tally::Add(std::string_view row) {
  // FNV alone is too regular to be summed; the finalizer is that of splitmix64.
  uint64_t hash = Fingerprint(row) + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  sum_ += hash ^ (hash >> 31);
  ++rows_;
}

IndexRecord JobRow::Place() const {
  return {
      .place = table == Table::kTimers ? IndexRecord::Place::kTimers : IndexRecord::Place::kDead,
      .queue = record.queue,
      .at = at,
      .plain = IsPlain(record)};
}

StatusOr<JobRow> DecodeJobRow(Table table, std::string_view key, std::string_view value) {
  JobRow job{.table = table, .key = std::string(key)};
  if (table == Table::kTimers) {
    DELAYD_ASSIGN_OR_RETURN(const TimerKeyParts parts, ParseTimerKey(key));
    job.at = parts.key_due;
  } else {
    DELAYD_ASSIGN_OR_RETURN(const DeadKeyParts parts, ParseDeadKey(key));
    job.at = parts.died;
  }
  DELAYD_ASSIGN_OR_RETURN(job.record, DecodeJobRecord(table, key, value));
  return job;
}

IndexRecord PlaceOfDone(const TimerKeyParts& parts, QueueId queue) {
  return {.place = IndexRecord::Place::kDone, .queue = queue, .at = parts.key_due};
}

std::string JobName(JobId id) {
  return "job " + std::to_string(ToInt(id));
}

bool Findings::Row(Table table) {
  ++report.rows;
  stopped_ = stopped_ || (progress_ && !progress_(table, report.rows));
  return !stopped_;
}

void Findings::Note(Table table, std::string what, bool repairable) {
  if (++report.disagreement_count <= kDisagreementsMax) {
    report.disagreements.push_back(
        {.table = table, .what = std::move(what), .repairable = repairable});
  }
}

void Findings::Add(Table table, std::string what) {
  Note(table, std::move(what), false);
}

void Findings::AddRepairable(Table table,
                             std::string what,
                             std::string_view key,
                             std::string_view value) {
  Note(table, std::move(what), true);
  if (MayRepair()) {
    report.repair.Put(table, key, value);
  }
}

void Findings::AddSuperfluous(Table table, std::string what, std::string_view key) {
  Note(table, std::move(what), true);
  if (MayRepair()) {
    report.repair.Delete(table, key);
  }
}

void Findings::AddUnread(Table table, const Status& status) {
  if (report.unread.emplace(status.message()).second) {
    Add(table, std::string(status.message()));
  }
}

PairCheck::Row PairCheck::Look(Table table, std::string_view key, std::string* value) const {
  const Status got = store_.Get(table, key, value);
  if (got.code() == StatusCode::kNotFound) {
    return Row::kMissing;
  }
  if (!got.ok()) {
    findings_->AddUnread(table, got);
    return Row::kUnread;
  }
  return Row::kThere;
}

// Called for jobs, then for ends of which no job is left, and all before any row that leads to one.
void PairCheck::RebuildIndex(JobId id,
                             std::string what,
                             std::string_view key,
                             std::string_view should_be) {
  if (findings_->MayRepair()) {  // otherwise no row is removed any more
    found_again_.insert(id);
  }
  findings_->AddRepairable(Table::kIndex, std::move(what), key, should_be);
}

void PairCheck::IndexOfJob(const JobRow& job) {
  const std::string key = IndexKey(job.record.id);
  const std::string should_be = EncodeIndexRecord(key, job.Place());
  std::string value;
  const Row row = Look(Table::kIndex, key, &value);
  if (row == Row::kMissing) {
    RebuildIndex(
        job.record.id, JobName(job.record.id) + ": its index row is missing", key, should_be);
  }
  if (row != Row::kThere) {
    return;
  }
  const auto place = DecodeIndexRecord(key, value);
  if (!place.ok()) {
    RebuildIndex(job.record.id, std::string(place.status().message()), key, should_be);
  } else if (!SamePlace(*place, job.Place())) {
    const std::string what = JobName(job.record.id) + ": its record is in " +
                             PlaceName(job.Place()) + ", and its index row says " +
                             PlaceName(*place);
    const Found other = Find(job.record.id);
    if (other.unread) {
      findings_->Add(Table::kIndex, what + ", which cannot be read");
    } else if (other.job.has_value()) {
      // Each is the job as it was at some time; both would be handed out.
      findings_->AddSuperfluous(job.table, what + ", where there is another", job.key);
    } else {
      RebuildIndex(job.record.id, what, key, should_be);
    }
  } else if (place->plain && !job.Place().plain) {
    // The opposite case is a row of version 1.
    findings_->AddRepairable(
        Table::kIndex,
        JobName(job.record.id) +
            ": its index row says that it has no key, no user and no large payload, and it has",
        key,
        should_be);
  }
}

void PairCheck::IndexOfDone(const TimerKeyParts& parts, QueueId queue) {
  const Found found = Find(parts.id);
  if (found_again_.contains(parts.id) || found.job.has_value()) {
    // When this row is forgotten, the index row goes with it; by now that is the live job's.
    findings_->AddSuperfluous(
        Table::kDone,
        "finished " + JobName(parts.id) + ": it is there again, and its end is kept all the same",
        DoneKey(parts.key_due, parts.id));
    return;
  }
  const std::string key = IndexKey(parts.id);
  const IndexRecord place = PlaceOfDone(parts, queue);
  std::string value;
  const Row row = Look(Table::kIndex, key, &value);
  if (row == Row::kMissing) {
    findings_->AddRepairable(Table::kIndex,
                             "finished " + JobName(parts.id) + ": its index row is missing",
                             key,
                             EncodeIndexRecord(key, place));
  }
  if (row != Row::kThere) {
    return;
  }
  const auto index = DecodeIndexRecord(key, value);
  if (!index.ok()) {
    findings_->AddRepairable(
        Table::kIndex, index.status().message(), key, EncodeIndexRecord(key, place));
  } else if (!SamePlace(*index, place)) {
    const std::string what = "finished " + JobName(parts.id) + ": its record is in " +
                             PlaceName(place) + ", and its index row says " + PlaceName(*index);
    if (found.missing && all_jobs_read_) {
      RebuildIndex(parts.id, what, key, EncodeIndexRecord(key, place));
    } else {
      findings_->Add(Table::kIndex, what);
    }
  }
}

void PairCheck::ByQueueOfJob(const JobRow& job) {
  const std::string key = ByQueueKey(job.record.queue, job.at, job.record.id);
  std::string value;
  if (Look(Table::kByQueue, key, &value) == Row::kMissing) {
    findings_->AddRepairable(
        Table::kByQueue, JobName(job.record.id) + ": its by_queue row is missing", key, {});
  }
}

void PairCheck::BigOfJob(const JobRow& job) {
  const std::string key = IndexKey(job.record.id);
  std::string value;
  const Row row = Look(Table::kBig, key, &value);
  if (row == Row::kMissing) {
    findings_->Add(Table::kBig, JobName(job.record.id) + ": its payload is missing");
  }
  if (row != Row::kThere) {
    return;
  }
  const auto payload = DecodeBigPayload(key, value);
  if (payload.ok() && payload->size() != job.record.payload_bytes) {
    findings_->Add(Table::kBig,
                   JobName(job.record.id) + ": its payload has " + std::to_string(payload->size()) +
                       " bytes and should have " + std::to_string(job.record.payload_bytes));
  }
}

void PairCheck::KeyOfJob(const JobRow& job) {
  const std::string key = ClientKey(job.record.queue, job.record.key);
  const std::string should_be =
      EncodeKeyRecord(key, {.id = job.record.id, .fingerprint = job.record.fingerprint});
  std::string value;
  const Row row = Look(Table::kKeys, key, &value);
  if (row == Row::kMissing) {
    findings_->AddRepairable(
        Table::kKeys,
        JobName(job.record.id) + ": the row of its " + KeyName(key) + " is missing",
        key,
        should_be);
  }
  if (row != Row::kThere) {
    return;
  }
  const auto holder = DecodeKeyRecord(key, value);
  if (holder.ok() && holder->id != job.record.id) {
    findings_->Add(
        Table::kKeys,
        JobName(job.record.id) + ": its " + KeyName(key) + " belongs to " + JobName(holder->id));
  } else if (holder.ok() && holder->finished.has_value()) {
    findings_->AddRepairable(
        Table::kKeys,
        JobName(job.record.id) + ": its " + KeyName(key) + " says that it has finished",
        key,
        should_be);
  }
}

void PairCheck::JobOfIndex(std::string_view key, std::string_view value) {
  const auto id = ParseIndexKey(key);
  const auto place = DecodeIndexRecord(key, value);
  if (!id.ok() || !place.ok() || found_again_.contains(*id)) {
    return;
  }
  if (const Found found = Find(*id); found.unread || found.job.has_value()) {
    return;
  }
  if (place->place == IndexRecord::Place::kDone) {
    JobOfDoneIndex(*id, *place, key);
    return;
  }
  const std::string what = JobName(*id) + ": its index row leads to " + PlaceName(*place) +
                           ", where no whole record of it is";
  if (place->plain && IsRecordMissing(*id, *place)) {
    // Otherwise, ending the job without reading its record would decrement a count that does not
    // include it.
    IndexRecord to_be_read = *place;
    to_be_read.plain = false;
    findings_->AddRepairable(Table::kIndex, what, key, EncodeIndexRecord(key, to_be_read));
    return;
  }
  findings_->Add(Table::kTimers, what);
}

bool PairCheck::IsRecordMissing(JobId id, const IndexRecord& place) {
  std::string value;
  const RecordRow row = RowOfRecord(place, id);
  return Look(row.table, row.key, &value) == Row::kMissing;
}

void PairCheck::JobOfDoneIndex(JobId id, const IndexRecord& place, std::string_view key) {
  const std::string done_key = DoneKey(place.at, id);
  std::string value;
  const Row row = Look(Table::kDone, done_key, &value);
  if (row == Row::kMissing) {
    findings_->AddSuperfluous(Table::kIndex,
                              "finished " + JobName(id) + ": an index row leads to " +
                                  PlaceName(place) + ", where it is not",
                              key);
  }
  if (row != Row::kThere) {
    return;
  }
  // A row that cannot be decoded is named with the rows of its own table.
  const auto done = DecodeDoneRecord(done_key, value);
  if (done.ok() && !done->kept_until) {
    findings_->AddSuperfluous(
        Table::kIndex, "finished " + JobName(id) + ": it has an index row and needs none", key);
  }
}

void PairCheck::JobOfByQueue(std::string_view key) {
  const auto parts = ParseByQueueKey(key);
  if (!parts.ok() || found_again_.contains(parts->id)) {
    return;
  }
  const IndexRecord place{
      .place = IndexRecord::Place::kTimers, .queue = parts->queue, .at = parts->key_due};
  const Found found = Find(parts->id);
  if (found.unread || (found.job.has_value() && SamePlace(found.job->Place(), place))) {
    return;
  }
  // If the index leads here too, a record is missing, and this row is what is left of the job.
  const std::string index_key = IndexKey(parts->id);
  std::string value;
  if (Look(Table::kIndex, index_key, &value) == Row::kThere) {
    const auto index = DecodeIndexRecord(index_key, value);
    if (!index.ok() || SamePlace(*index, place)) {
      findings_->Add(Table::kTimers,
                     JobName(parts->id) + ": its by_queue row leads to " + PlaceName(place) +
                         ", where no whole record of it is");
      return;
    }
  }
  findings_->AddSuperfluous(
      Table::kByQueue,
      JobName(parts->id) + ": a by_queue row leads to " + PlaceName(place) + ", where it is not",
      key);
}

void PairCheck::JobOfBig(std::string_view key) {
  const auto id = ParseIndexKey(key);
  if (!id.ok() || found_again_.contains(*id)) {
    return;
  }
  const Found found = Find(*id);
  if (!found.unread && (!found.job.has_value() || !found.job->record.payload_is_big)) {
    findings_->Add(Table::kBig, "payload of " + JobName(*id) + ": no such job needs it");
  }
}

void PairCheck::JobOfKey(std::string_view key, const KeyRecord& record) {
  const Found found = Find(record.id);
  const bool has_it =
      found.job.has_value() && ClientKey(found.job->record.queue, found.job->record.key) == key;
  if (found.unread || has_it || found_again_.contains(record.id)) {
    return;
  }
  if (found.done.has_value()) {
    KeyOfDone(key, record, *found.done);
    return;
  }
  const std::string what = KeyName(key) + ": it belongs to " + JobName(record.id) +
                           ", which is not there or has another key";
  if (found.job.has_value() || (found.missing && all_jobs_read_)) {
    // Otherwise nobody could enqueue under this key again.
    findings_->AddSuperfluous(Table::kKeys, what, key);
  } else {
    findings_->Add(Table::kKeys, what);
  }
}

// A finished job's key row must say that it has finished, or it would remain when the job is
// forgotten.
void PairCheck::KeyOfDone(std::string_view key, const KeyRecord& record, const IndexRecord& place) {
  const std::string done_key = DoneKey(place.at, record.id);
  const std::string what =
      KeyName(key) + ": it does not say that " + JobName(record.id) + " has finished";
  std::string value;
  const Row row = Look(Table::kDone, done_key, &value);
  if (row == Row::kMissing) {
    findings_->AddSuperfluous(Table::kKeys, what, key);
  }
  if (row != Row::kThere) {
    return;
  }
  const auto done = DecodeDoneRecord(done_key, value);
  if (!done.ok() || !done->kept_until || ClientKey(done->queue, done->key) != key) {
    findings_->Add(Table::kKeys, what);
    return;
  }
  findings_->AddRepairable(Table::kKeys,
                           what,
                           key,
                           EncodeKeyRecord(key,
                                           {.id = record.id,
                                            .fingerprint = record.fingerprint,
                                            .expiry = done->kept_until,
                                            .finished = place.at,
                                            .cancelled = done->cancelled}));
}

PairCheck::Found PairCheck::Find(JobId id) const {
  const std::string index_key = IndexKey(id);
  std::string value;
  if (const Row row = Look(Table::kIndex, index_key, &value); row != Row::kThere) {
    return {.unread = row == Row::kUnread, .missing = row == Row::kMissing};
  }
  const auto place = DecodeIndexRecord(index_key, value);
  if (!place.ok()) {
    return {};
  }
  if (place->place == IndexRecord::Place::kDone) {
    return {.done = *place};
  }
  const auto [table, key] = RowOfRecord(*place, id);
  if (const Row row = Look(table, key, &value); row != Row::kThere) {
    return {.unread = row == Row::kUnread, .missing = row == Row::kMissing};
  }
  StatusOr<JobRow> job = DecodeJobRow(table, key, value);
  const bool leads_here = job.ok() && SamePlace(job->Place(), *place);
  return {.job = leads_here ? std::optional(*std::move(job)) : std::nullopt};
}

}  // namespace delayd::storage

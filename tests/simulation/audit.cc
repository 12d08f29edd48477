// The store held against the model: row by row, and by building a second engine from it.
#include <array>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/verify.h"
#include "tests/simulation/compare.h"
#include "tests/simulation/oracle.h"

namespace delayd::simulation {
namespace {

using storage::Table;

using Rows = std::map<std::string, std::string, std::less<>>;

Rows ReadAll(const storage::JobReader& store, Table table) {
  Rows rows;
  // From the first key on, low-water mark or not: what lies below it would never be found again.
  const std::string from = storage::NeedsScanStart(table) ? std::string(1, '\0') : std::string();
  const Status scanned =
      store.Scan(table, from, {}, [&rows](std::string_view key, std::string_view value) {
        rows.emplace(key, value);
        return true;
      });
  DELAYD_CHECK(scanned.ok());
  return rows;
}

class Audit {
 public:
  Audit(const Model& model, const storage::JobReader& store) : model_(model) {
    for (size_t i = 0; i < storage::kTableCount; ++i) {
      rows_[i] = ReadAll(store, static_cast<Table>(i));
    }
  }

  std::string Run() {
    CheckQueues();
    for (const auto& [id, job] : model_.jobs()) {
      CheckJob(job);
    }
    CheckKeys();
    CheckDone();
    CheckCounts();
    for (const Table table : {Table::kTimers,
                              Table::kIndex,
                              Table::kByQueue,
                              Table::kKeys,
                              Table::kBig,
                              Table::kDead,
                              Table::kDone,
                              Table::kQueues}) {
      if (!Of(table).empty()) {
        Fail("table " + std::string(TableName(table)) + " has " + std::to_string(Of(table).size()) +
             " rows too many");
      }
    }
    return found_;
  }

 private:
  Rows& Of(Table table) { return rows_[static_cast<size_t>(table)]; }

  void Fail(const std::string& what) {
    if (found_.empty()) {
      found_ = "the store: " + what;
    }
  }

  // Takes the row out, so that what is left at the end is too much.
  std::optional<std::string> Take(Table table, const std::string& key, const std::string& whose) {
    const auto row = Of(table).find(key);
    if (row == Of(table).end()) {
      Fail(whose + " has no row in " + std::string(TableName(table)));
      return std::nullopt;
    }
    std::string value = row->second;
    Of(table).erase(row);
    return value;
  }

  void CheckQueues() {
    for (const auto& [name, queue] : model_.queues()) {
      if (!queue.stored) {
        continue;
      }
      if (const auto value = Take(Table::kQueues, name, "queue " + name)) {
        const auto record = *storage::DecodeQueueRecord(name, *value);
        ids_[name] = record.id;
        CheckPause(name, queue, record);
      } else {
        ids_[name] = QueueId{};
      }
    }
  }

  void CheckPause(const std::string& name,
                  const ModelQueue& queue,
                  const storage::QueueRecord& record) {
    // The end on the boot clock is that of the boot the pause began in: a later one only reckons.
    const auto& pause = record.pause;
    bool same = pause.has_value() == queue.pause.has_value();
    if (same && pause) {
      same = pause->since == queue.pause->since &&
             pause->timed.has_value() == queue.pause->length.has_value();
    }
    if (same && pause && pause->timed) {
      same = pause->timed->length == *queue.pause->length &&
             pause->timed->boot_id == queue.pause->boot_id;
    }
    if (!same) {
      Fail("the pause of queue " + name + " is not kept as it should be");
    }
  }

  void CheckJob(const ModelJob& job) {
    const std::string whose = "job " + std::to_string(ToInt(job.id));
    const QueueId queue = ids_[job.spec->queue];
    const bool dead = job.state == JobState::kDead;
    const Table table = dead ? Table::kDead : Table::kTimers;
    const std::string key =
        dead ? storage::DeadKey(queue, job.place, job.id) : storage::TimerKey(job.place, job.id);
    if (!dead) {
      Take(Table::kByQueue, storage::ByQueueKey(queue, job.place, job.id), whose);
    }
    ++(dead ? counts_[queue].dead : counts_[queue].pending);
    if (!job.user.empty()) {
      ++user_jobs_[job.user];
    }
    const std::string index_key = storage::IndexKey(job.id);
    if (const auto value = Take(Table::kIndex, index_key, whose)) {
      using Place = storage::IndexRecord::Place;
      const auto index = storage::DecodeIndexRecord(index_key, *value);
      if (!(index.ok() &&
            *index == storage::IndexRecord{
                          .place = dead ? Place::kDead : Place::kTimers,
                          .queue = queue,
                          .at = job.place,
                          .plain = job.spec->key.empty() && job.user.empty() &&
                                   job.spec->payload.size() <= limits::kInlinePayloadBytesMax})) {
        Fail(whose + ": its index row leads elsewhere");
      }
    }
    if (const auto value = Take(table, key, whose)) {
      const auto record = storage::DecodeJobRecord(table, key, *value);
      if (!record.ok()) {
        return Fail(record.status().message());
      }
      CheckRecord(job, *record, whose);
    }
  }

  void CheckRecord(const ModelJob& job,
                   const storage::JobRecord& record,
                   const std::string& whose) {
    JobView view = model_.ViewOf(job, JobState::kReady);
    view.state = JobState::kReady;
    view.due = job.due;
    JobView stored = view;
    stored.key = record.key;
    stored.due_kind = record.due_kind;
    stored.due = record.due;
    stored.created = record.created;
    stored.priority = record.priority;
    stored.lease = record.lease;
    stored.attempt = record.attempts;
    stored.max_attempts = record.max_attempts;
    stored.expires_after = record.expires_after.count() > 0
                               ? std::optional<Millis>(record.expires_after)
                               : std::nullopt;
    stored.last_error = record.last_error;
    stored.payload_bytes = record.payload_bytes;
    stored.delay = storage::DelayOf(record);
    stored.fingerprint = record.fingerprint;
    stored.timeouts = record.timeouts;
    stored.releases = record.releases;
    stored.buries = record.buries;
    stored.kicks = record.kicks;
    if (std::string difference = Difference(view, stored); !difference.empty()) {
      Fail(difference);
    }
    if (record.events != job.events) {
      Fail(whose + ": the story of its life is another");
    }
    if (record.returns != job.returns) {
      Fail(whose + ": " + std::to_string(record.returns) + " hand-outs were given back, and " +
           std::to_string(job.returns) + " should be");
    }
    if (record.user != job.user) {
      Fail(whose + " counts against the quota of another user");
    }
    if (record.boot_id != job.boot_id || record.boot_due != job.boot_due) {
      Fail(whose + ": the promise on the boot clock is not the one that was given");
    }
    std::string payload = record.payload;
    if (record.payload_is_big) {
      const std::string big_key = storage::IndexKey(job.id);
      if (const auto value = Take(Table::kBig, big_key, whose)) {
        const auto big = storage::DecodeBigPayload(big_key, *value);
        payload = big.ok() ? std::string(*big) : std::string("damaged");
      }
    }
    if (payload != job.spec->payload) {
      Fail("P9: " + whose + ": its payload is not the one that was sent");
    }
  }

  void CheckKeys() {
    for (const auto& [queue_key, known] : model_.keys()) {
      const std::string whose = "key " + queue_key.second + " in queue " + queue_key.first;
      const std::string key = storage::ClientKey(ids_[queue_key.first], queue_key.second);
      const auto value = Take(Table::kKeys, key, whose);
      if (!value) {
        continue;
      }
      const auto record = storage::DecodeKeyRecord(key, *value);
      if (!record.ok() || record->id != known.id ||
          record->finished.has_value() != known.finished ||
          (known.finished &&
           (*record->finished != known.finished_at || *record->expiry != known.expiry))) {
        Fail("P7: " + whose + " is not kept as it should be");
      }
    }
  }

  void CheckDone() {
    for (const auto& [place, known] : model_.done()) {
      const std::string whose = "finished job " + std::to_string(ToInt(place.second));
      const std::string key = storage::DoneKey(place.first, place.second);
      const auto value = Take(Table::kDone, key, whose);
      if (!value) {
        continue;
      }
      ++*counts_[ids_[known.queue]].done;
      const auto record = storage::DecodeDoneRecord(key, *value);
      if (!record.ok() || record->key != known.key || record->cancelled != known.cancelled ||
          record->attempts != known.attempts || record->due != known.due ||
          record->queue != ids_[known.queue] || record->kept_until != known.kept_until ||
          record->story.has_value() != known.story.has_value()) {
        Fail(whose + " is not kept as it should be");
      }
      const std::string index_key = storage::IndexKey(place.second);
      if (const auto row = Take(Table::kIndex, index_key, whose)) {
        const auto index = storage::DecodeIndexRecord(index_key, *row);
        if (!(index.ok() &&
              *index == storage::IndexRecord{.place = storage::IndexRecord::Place::kDone,
                                             .queue = ids_[known.queue],
                                             .at = place.first})) {
          Fail(whose + ": its index row leads elsewhere");
        }
      }
    }
  }

  void CheckCounts() {
    for (const auto& [name, id] : ids_) {
      const std::string key = storage::QueueCountsKey(id);
      const auto row = Of(Table::kMeta).find(key);
      const auto counts = row == Of(Table::kMeta).end()
                              ? StatusOr<storage::QueueCounts>(NotFound("none"))
                              : storage::DecodeQueueCounts(key, row->second);
      if (!counts.ok() || counts->pending != counts_[id].pending ||
          counts->dead != counts_[id].dead || counts->done != counts_[id].done) {
        Fail("the counters of queue " + name + " are wrong");
      }
    }
    std::map<std::string, uint64_t> stored;
    for (const auto& [key, value] : Of(Table::kMeta)) {
      if (key.starts_with(storage::kUserJobsPrefix)) {
        stored.emplace(storage::UserOfKey(key), storage::DecodeNumber(key, value).value());
      }
    }
    if (stored != user_jobs_) {
      Fail("the counters of users are wrong");
    }
  }

  const Model& model_;
  std::array<Rows, storage::kTableCount> rows_;
  std::map<std::string, QueueId> ids_;
  std::map<QueueId, storage::QueueCounts> counts_;
  std::map<std::string, uint64_t> user_jobs_;
  std::string found_;
};

}  // namespace

void Oracle::CheckRows(const storage::JobReader& store) {
  if (std::string found = Audit(durable_, store).Run(); !found.empty()) {
    Fail(found);
  }
}

void Oracle::CheckVerify(const storage::JobReader& store) {
  const auto report = storage::VerifyStore(store);
  if (!report.ok()) {
    Fail("verify cannot read the store: " + report.status().message());
  } else if (!report->ok()) {
    Fail("verify complains of a whole store: " + report->disagreements[0].what);
  }
}

void Oracle::CheckRebuild(const storage::JobReader& store, const Now& now) {
  // Settings of queues as they are now, which the rows must not depend on.
  const engine::EngineOptions options = model_.options();
  auto loaded = engine::Engine::Load(options, store, now);
  if (!loaded.ok()) {
    return Fail("a start on this store fails: " + loaded.status().message());
  }
  engine::Engine& engine = **loaded;
  Oracle second(options);
  second.model_ = durable_;
  second.committed_ = committed_;
  second.Restarted(options, store, now);
  // Nothing is written: the second engine only believes that its batches are durable.
  const auto commit_all = [&] {
    while (const auto sealed = engine.Seal(now)) {
      second.Sealed(*sealed, now);
      engine.Committed(sealed->sequence);
      second.Committed(sealed->sequence);
    }
    for (const engine::Reply& reply : engine.TakeReplies()) {
      second.Replied(reply);
    }
  };
  commit_all();
  second.CheckCounters(engine.stats());
  if (second.model_.Follows()) {
    second.Advanced(now);
    while (engine.Advance(now)) {
    }
    second.CheckNextEvent(engine.UntilNextEvent(now), now);
  }
  engine::Lease everything{.count = limits::kLeaseCountMax};
  for (const auto& [name, queue] : second.model_.queues()) {
    everything.queues.push_back(name);
  }
  if (!everything.queues.empty()) {
    second.Executed(1, everything, now);
    engine.Execute(1, everything, now);
    commit_all();
    second.CheckNothingOwed();
    second.CheckCounters(engine.stats());
  }
  if (!second.violation_.empty()) {
    Fail("an engine rebuilt from the store: " + second.violation_);
  }
}

}  // namespace delayd::simulation

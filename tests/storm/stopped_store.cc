#include "tests/storm/stopped_store.h"

#include "protocol/json_writer.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "storage/verify.h"
#include "tests/storm/history_log.h"

namespace delayd::storm {
namespace {

using storage::Table;

StatusOr<std::string> PayloadOf(const storage::JobReader& store, const storage::JobRecord& record) {
  if (!record.payload_is_big) {
    return record.payload;
  }
  const std::string key = storage::IndexKey(record.id);
  std::string value;
  DELAYD_RETURN_IF_ERROR(store.Get(Table::kBig, key, &value));
  DELAYD_ASSIGN_OR_RETURN(const std::string_view payload, storage::DecodeBigPayload(key, value));
  return std::string(payload);
}

std::string Entry(JobId id, std::string_view state, std::string_view payload) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.String("state", state);
  entry.String("payload", LabelOf(payload));
  return entry.Take();
}

Status ReadJobs(const storage::JobReader& store,
                Table table,
                std::string_view from,
                std::string_view state,
                StoppedStore* found) {
  return store.Scan(table, from, "", [&](std::string_view key, std::string_view value) {
    const auto record = storage::DecodeJobRecord(table, key, value);
    const auto payload = record.ok() ? PayloadOf(store, *record) : record.status();
    if (payload.ok()) {
      found->jobs.push_back(Entry(record->id, state, *payload));
    } else {
      found->faults.emplace_back(payload.status().message());
    }
    return true;
  });
}

}  // namespace

StatusOr<StoppedStore> ReadStoppedStore(const std::string& data_dir) {
  DELAYD_ASSIGN_OR_RETURN(const auto store, storage::OpenRocksJobReader({.path = data_dir}));
  StoppedStore found;
  std::string batch;
  const Status read = store->Get(Table::kMeta, storage::kBatchNumberKey, &batch);
  if (read.ok()) {
    DELAYD_ASSIGN_OR_RETURN(found.batch, storage::DecodeNumber(storage::kBatchNumberKey, batch));
  } else if (read.code() != StatusCode::kNotFound) {
    return read;
  }
  DELAYD_ASSIGN_OR_RETURN(const storage::VerifyReport report, storage::VerifyStore(*store));
  for (const storage::Disagreement& one : report.disagreements) {
    found.faults.push_back(one.what);
  }
  DELAYD_RETURN_IF_ERROR(
      ReadJobs(*store, Table::kTimers, storage::TimerKey(WallTime{}, JobId{}), "pending", &found));
  DELAYD_RETURN_IF_ERROR(ReadJobs(*store, Table::kDead, "", "dead", &found));
  return found;
}

}  // namespace delayd::storm

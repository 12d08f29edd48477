#include "daemon/engine/pending_changes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace delayd::engine {
namespace {

using storage::Table;

// The tables that are read by key, or asked whether a key is changing, while changes may be under
// way.
bool IsReadByKey(Table table) {
  switch (table) {
    case Table::kTimers:
    case Table::kIndex:
    case Table::kKeys:
    case Table::kBig:
    case Table::kDead:
    case Table::kDone:
    case Table::kQueues:
      return true;
    case Table::kMeta:
    case Table::kByQueue:
      return false;
  }
  DELAYD_CHECK(false);
}

}  // namespace

storage::Batch& PendingChanges::Open() {
  if (open_ == nullptr) {
    open_ = std::make_shared<storage::Batch>();
    open_->Reserve(ops_expected_, bytes_expected_);
  }
  touched_ = open_sequence_;
  return *open_;
}

void PendingChanges::Put(Table table, std::string_view key, std::string_view value) {
  Open().Put(table, key, value);
  Note(table, key);
  if (table == Table::kIndex) {
    recent_.Put(key, value);
  }
}

void PendingChanges::PutLarge(Table table, std::string_view key, std::string value) {
  DELAYD_CHECK(table != Table::kIndex);  // whose recent rows are small ones
  Open().PutLarge(table, key, std::move(value));
  Note(table, key);
}

void PendingChanges::Delete(Table table, std::string_view key) {
  Open().Delete(table, key);
  Note(table, key);
  if (table == Table::kIndex) {
    recent_.Delete(key);
  }
}

PendingChanges::Row PendingChanges::MakeRow(Table table, std::string_view key) {
  const size_t hash =
      XXH3_64bits_withSeed(key.data(), key.size(), static_cast<XXH64_hash_t>(table));
  return {.table = table, .key = key, .hash = hash};
}

void PendingChanges::Note(Table table, std::string_view key) {
  if (!IsReadByKey(table)) {
    return;
  }
  const Row row = MakeRow(table, key);
  const Change change{.hash = row.hash,
                      .batch = open_.get(),
                      .index = open_->size() - 1,
                      .sequence = open_sequence_};
  const auto [found, inserted] = changed_.insert(change);
  if (!inserted) {
    found->batch = change.batch;
    found->index = change.index;
    found->sequence = change.sequence;
  }
}

const PendingChanges::Change* PendingChanges::Find(Table table, std::string_view key) const {
  if (changed_.empty()) {
    return nullptr;
  }
  const auto found = changed_.find(MakeRow(table, key));
  if (found == changed_.end()) {
    return nullptr;
  }
  touched_ = std::max(touched_, found->sequence);
  return &*found;
}

Status PendingChanges::ValueOf(const Change& change, std::string* value) {
  const storage::Batch::Op op = change.op();
  if (op.is_delete) {
    return NotFound("row deleted by a change that is under way");
  }
  value->assign(op.value);
  return OkStatus();
}

Status PendingChanges::Get(Table table, std::string_view key, std::string* value) const {
  DELAYD_CHECK(IsReadByKey(table));
  if (const Change* change = Find(table, key)) {
    return ValueOf(*change, value);
  }
  if (table == Table::kIndex) {
    if (const std::optional<std::string_view> row = recent_.Find(key)) {
      value->assign(*row);
      return OkStatus();
    }
  }
  return store_.Get(table, key, value);
}

Status PendingChanges::GetInOrder(std::string_view key,
                                  WallTime before,
                                  size_t wanted,
                                  std::string* value) {
  if (const Change* change = Find(Table::kTimers, key)) {
    return ValueOf(*change, value);
  }
  if (const std::optional<std::string_view> row = ahead_.Find(key, before, wanted)) {
    value->assign(*row);
    return OkStatus();
  }
  return store_.Get(Table::kTimers, key, value);
}

Status PendingChanges::Scan(Table table,
                            std::string_view from,
                            std::string_view to,
                            const Visitor& visit) const {
  return store_.Scan(table, from, to, visit);
}

bool PendingChanges::IsChanging(Table table, std::string_view key) const {
  return Find(table, key) != nullptr;
}

void PendingChanges::Close(size_t jobs) {
  DELAYD_CHECK(open_ != nullptr);
  ops_expected_ = std::min(open_->size(), kOpsExpectedMax);
  bytes_expected_ = std::min(open_->buffer_bytes(), kBytesExpectedMax);
  closed_.push_back({.sequence = open_sequence_, .batch = std::move(open_), .jobs = jobs});
  open_.reset();
  ++open_sequence_;
}

std::optional<SealedBatch> PendingChanges::TakeClosed() {
  if (closed_.empty()) {
    return std::nullopt;
  }
  underway_.push_back(std::move(closed_.front()));
  closed_.pop_front();
  return underway_.back();
}

// Until now the changes of these rows were found before the rows read ahead.
void PendingChanges::ForgetRowsAhead(const storage::Batch& batch) {
  for (size_t i = 0; i < batch.size() && !ahead_.empty(); ++i) {
    if (const storage::Batch::Op op = batch.op(i); op.table == Table::kTimers) {
      ahead_.Forget(op.key);
    }
  }
}

// One pass over all changes under way is cheaper than a search for each that ends, unless few of
// them end.
void PendingChanges::EraseChanges(const storage::Batch& batch, uint64_t sequence) {
  if (changed_.bucket_count() <= kBucketsAnOp * batch.size()) {
    erase_if(changed_, [sequence](const Change& change) { return change.sequence == sequence; });
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    const storage::Batch::Op op = batch.op(i);
    if (!IsReadByKey(op.table)) {
      continue;
    }
    const auto found = changed_.find(MakeRow(op.table, op.key));
    if (found != changed_.end() && found->sequence == sequence) {
      changed_.erase(found);
    }
  }
}

void PendingChanges::Committed(uint64_t sequence) {
  DELAYD_CHECK(!underway_.empty());
  DELAYD_CHECK(underway_.front().sequence == sequence);
  const storage::Batch& batch = *underway_.front().batch;
  ForgetRowsAhead(batch);
  EraseChanges(batch, sequence);
  committed_ = sequence;
  underway_.pop_front();
}

size_t PendingChanges::uncommitted_bytes() const {
  size_t bytes = open_bytes();
  for (const SealedBatch& batch : closed_) {
    bytes += batch.batch->bytes();
  }
  for (const SealedBatch& batch : underway_) {
    bytes += batch.batch->bytes();
  }
  return bytes;
}

}  // namespace delayd::engine

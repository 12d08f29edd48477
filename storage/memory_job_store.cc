#include "storage/memory_job_store.h"

#include "base/check.h"

namespace delayd::storage {

Status MemoryJobStore::Get(Table table, std::string_view key, std::string* value) const {
  if (closed_) {
    return StoreClosed();
  }
  const auto& rows = tables_[static_cast<size_t>(table)];
  const auto row = rows.find(key);
  if (row == rows.end()) {
    return NotFound("no such row");
  }
  *value = row->second;
  return OkStatus();
}

Status MemoryJobStore::Scan(Table table,
                            std::string_view from,
                            std::string_view to,
                            const Visitor& visit) const {
  DELAYD_CHECK(!from.empty() || !NeedsScanStart(table));
  if (closed_) {
    return StoreClosed();
  }
  const auto& rows = tables_[static_cast<size_t>(table)];
  for (auto row = rows.lower_bound(from); row != rows.end(); ++row) {
    if (!to.empty() && row->first >= to) {
      break;
    }
    if (!visit(row->first, row->second)) {
      break;
    }
  }
  return OkStatus();
}

Status MemoryJobStore::Commit(const Batch& batch, const OnDurable& on_durable) {
  if (closed_) {
    return StoreClosed();
  }
  if (failure_ == Failure::kFailed) {
    return Unavailable("an earlier commit failed; restart to read what is true", "store_stopped");
  }
  const Failure failure = failure_;
  if (on_durable && failure == Failure::kNone && !batch.empty()) {
    on_durable();
  }
  if (failure != Failure::kNextDropped) {
    Apply(batch);
  }
  if (failure != Failure::kNone) {
    failure_ = Failure::kFailed;
    return Unavailable("commit failed: injected I/O error; its outcome is unknown",
                       "storage_failed");
  }
  return OkStatus();
}

void MemoryJobStore::Apply(const Batch& batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    const Batch::Op op = batch.op(i);
    auto& rows = tables_[static_cast<size_t>(op.table)];
    if (op.is_delete) {
      const auto row = rows.find(op.key);
      if (row != rows.end()) {
        rows.erase(row);
      }
    } else {
      rows.insert_or_assign(std::string(op.key), std::string(op.value));
    }
  }
}

Status MemoryJobStore::Close() {
  closed_ = true;
  return OkStatus();
}

void MemoryJobStore::FailNextCommit(bool keep_batch) {
  failure_ = keep_batch ? Failure::kNextKept : Failure::kNextDropped;
}

void MemoryJobStore::Reopen() {
  failure_ = Failure::kNone;
  closed_ = false;
}

}  // namespace delayd::storage

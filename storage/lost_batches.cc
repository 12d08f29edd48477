#include "storage/lost_batches.h"

#include <algorithm>
#include <set>
#include <string>

#include <rocksdb/write_batch.h>

#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {
namespace {

// Finds the batch number that a batch contains.
class BatchNumberFinder final : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t family,
                        const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (static_cast<Table>(family) == Table::kMeta && key.ToStringView() == kBatchNumberKey) {
      const auto number = DecodeNumber(kBatchNumberKey, value.ToStringView());
      number_ = number.ok() ? std::optional(*number) : std::nullopt;
    }
    return rocksdb::Status::OK();
  }

  std::optional<uint64_t> number() const { return number_; }

 private:
  std::optional<uint64_t> number_;
};

// Collects the ids of written and ended jobs from lost batches. Column families were created in the
// order of Table, so their numbers are the tables'.
class JobIdCollector final : public rocksdb::WriteBatch::Handler {
 public:
  explicit JobIdCollector(RecoveryReport* report) : report_(report) {}

  rocksdb::Status PutCF(uint32_t family,
                        const rocksdb::Slice& key_slice,
                        const rocksdb::Slice& value) override {
    const std::string_view key = key_slice.ToStringView();
    switch (static_cast<Table>(family)) {
      case Table::kTimers:
        if (const auto parts = ParseTimerKey(key); parts.ok()) {
          Add(parts->id, &report_->lost_jobs);
        }
        break;
      case Table::kDead:  // without its death the job is waiting or ready again
        if (const auto parts = ParseDeadKey(key); parts.ok()) {
          Add(parts->id, &report_->lost_jobs);
        }
        break;
      case Table::kDone:  // a finished job of which something is kept
        if (const auto parts = ParseDoneKey(key); parts.ok()) {
          Add(parts->id, &report_->ended_jobs);
        }
        break;
      case Table::kMeta:
        if (key == kIdHighWaterMarkKey) {
          const auto mark = DecodeNumber(key, value.ToStringView());
          EndOfIds(mark.ok() ? *mark : 0);
        }
        break;
      default:
        break;
    }
    return rocksdb::Status::OK();
  }

  // A job's index row is deleted when the job ends and nothing is kept of it, or when what was kept
  // is forgotten.
  rocksdb::Status DeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    const auto id = ParseIndexKey(key.ToStringView());
    if (static_cast<Table>(family) == Table::kIndex && id.ok()) {
      Add(*id, &report_->ended_jobs);
    }
    return rocksdb::Status::OK();
  }

 private:
  void Add(JobId id, std::set<JobId>* jobs) {
    if (jobs->size() < kLostJobsMax) {
      jobs->insert(id);
    }
    EndOfIds(ToInt(id) + 1);
  }

  void EndOfIds(uint64_t end) { report_->lost_ids_end = std::max(report_->lost_ids_end, end); }

  RecoveryReport* report_;
};

void ReadBatch(std::string_view record, rocksdb::WriteBatch::Handler* handler) {
  rocksdb::WriteBatch(std::string(record)).Iterate(handler).PermitUncheckedError();
}

}  // namespace

std::optional<uint64_t> BatchNumberIn(std::string_view record) {
  BatchNumberFinder finder;
  ReadBatch(record, &finder);
  return finder.number();
}

void NoteLostBatch(std::string_view record, RecoveryReport* report) {
  JobIdCollector collector(report);
  ReadBatch(record, &collector);
}

}  // namespace delayd::storage

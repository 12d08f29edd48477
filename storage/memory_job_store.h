// storage/memory_job_store.h — a simple in-memory model of the JobStore contract, for simulation
// and tests.
//
// Errors:  after FailNextCommit, the next Commit fails and the store refuses every further one, as
//          a real store does; reads go on. After Close everything is refused until Reopen.
// Threads: one.
// Cost:    a std::map per table.
#pragma once

#include <array>
#include <map>
#include <string>

#include "storage/job_store.h"

namespace delayd::storage {

class MemoryJobStore final : public JobStore {
 public:
  Status Get(Table table, std::string_view key, std::string* value) const override;
  Status Scan(Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override;
  using JobStore::Commit;
  Status Commit(const Batch& batch, const OnDurable& on_durable) override;
  Status Close() override;

  // The next Commit answers an I/O error. The caller chooses whether its batch is kept, since
  // nobody may rely on either outcome.
  void FailNextCommit(bool keep_batch);
  // Forgets the failure and the close, as a restart of the process does.
  void Reopen();

 private:
  enum class Failure : unsigned char { kNone, kNextKept, kNextDropped, kFailed };
  void Apply(const Batch& batch);

  std::array<std::map<std::string, std::string, std::less<>>, kTableCount> tables_;
  Failure failure_ = Failure::kNone;
  bool closed_ = false;
};

}  // namespace delayd::storage

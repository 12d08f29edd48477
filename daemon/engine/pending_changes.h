// daemon/engine/pending_changes.h — the store as it will be once everything decided so far is
// durable.
//
// What:    gathers puts and deletes into the open batch, keeps the batches that are under way, and
//          answers reads from them before it asks the store. It notes which batches an access
//          touched, so that the answer made from it can wait for their commit.
// Errors:  those of the store.
// Threads: one owner; batches that were handed out are shared with the committer as const.
// Cost:    one hash insert per put or delete of the tables that are read by key.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/status.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/recent_index_rows.h"
#include "daemon/engine/rows_ahead.h"
#include "storage/batch.h"
#include "storage/job_store.h"

#include <boost/unordered/unordered_flat_set.hpp>

namespace delayd::engine {

class PendingChanges final : public storage::JobReader {
 public:
  PendingChanges(const storage::JobReader& store, uint64_t last_committed)
      : store_(store),
        ahead_(store),
        committed_(last_committed),
        open_sequence_(last_committed + 1) {}

  void Put(storage::Table table, std::string_view key, std::string_view value);
  void PutLarge(storage::Table table, std::string_view key, std::string value);
  void Delete(storage::Table table, std::string_view key);

  Status Get(storage::Table table, std::string_view key, std::string* value) const override;
  // A Get of kTimers for a caller that goes on with the rows behind it: see RowsAhead.
  Status GetInOrder(std::string_view key, WallTime before, size_t wanted, std::string* value);
  // Durable rows only.
  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override;

  // Visits the rows of a table that the changes under way put, in no order. Not an access.
  template <typename Visit>
  void ForEachPut(storage::Table table, const Visit& visit) const {
    for (const Change& change : changed_) {
      if (const storage::Batch::Op op = change.op(); op.table == table && !op.is_delete) {
        visit(op.key, op.value);
      }
    }
  }

  // Visits the keys that they delete.
  template <typename Visit>
  void ForEachDelete(storage::Table table, const Visit& visit) const {
    for (const Change& change : changed_) {
      if (const storage::Batch::Op op = change.op(); op.table == table && op.is_delete) {
        visit(op.key);
      }
    }
  }

  // How many rows ForEachPut looks at.
  size_t rows_underway() const { return changed_.size(); }

  // Whether a change of this row is on its way; counts as an access.
  bool IsChanging(storage::Table table, std::string_view key) const;

  // Starts anew: touched() is about accesses from here on.
  void BeginAccess() { touched_ = 0; }

  // The last batch, not yet durable, that an access since BeginAccess read from or wrote to; 0:
  // none.
  uint64_t touched() const { return touched_; }

  // Counts as an access to everything, as a look at counters is, which reflect all changes at once.
  void TouchAll() { touched_ = open_ != nullptr ? open_sequence_ : open_sequence_ - 1; }

  bool open_is_empty() const { return open_ == nullptr; }

  size_t open_bytes() const { return open_ == nullptr ? 0 : open_->bytes(); }

  // Whether the open batch, which changes `jobs` jobs, is so large that it must be closed.
  bool open_is_full(size_t jobs) const {
    return jobs >= limits::kCommitOpsJobsMax || open_bytes() >= limits::kCommitBytesMax;
  }

  uint64_t open_sequence() const { return open_sequence_; }

  // Ends the open batch, which changes `jobs` jobs; further changes go into the next.
  void Close(size_t jobs);
  std::optional<SealedBatch> TakeClosed();
  void Committed(uint64_t sequence);

  uint64_t committed() const { return committed_; }

  size_t uncommitted_bytes() const;

 private:
  struct Row {
    storage::Table table;
    std::string_view key;
    size_t hash;
  };

  // The last change of a row that is not durable yet. It is found by the key of that row, which
  // stays in the batch: the key is not copied.
  struct Change {
    size_t hash = 0;
    mutable const storage::Batch* batch = nullptr;
    mutable size_t index = 0;
    mutable uint64_t sequence = 0;

    storage::Batch::Op op() const { return batch->op(index); }
  };

  struct RowHash {
    using is_transparent = void;
    using is_avalanching = void;

    size_t operator()(const Row& row) const { return row.hash; }

    size_t operator()(const Change& change) const { return change.hash; }
  };

  struct SameRow {
    using is_transparent = void;

    static Row RowOf(const Row& row) { return row; }

    static Row RowOf(const Change& change) {
      const storage::Batch::Op op = change.op();
      return {.table = op.table, .key = op.key, .hash = change.hash};
    }

    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const Row left = RowOf(a);
      const Row right = RowOf(b);
      return left.hash == right.hash && left.table == right.table && left.key == right.key;
    }
  };

  static Status ValueOf(const Change& change, std::string* value);
  static Row MakeRow(storage::Table table, std::string_view key);
  storage::Batch& Open();
  void Note(storage::Table table, std::string_view key);
  const Change* Find(storage::Table table, std::string_view key) const;
  void ForgetRowsAhead(const storage::Batch& batch);
  void EraseChanges(const storage::Batch& batch, uint64_t sequence);

  const storage::JobReader& store_;
  RowsAhead ahead_;
  RecentIndexRows recent_;  // as they will be
  boost::unordered_flat_set<Change, RowHash, SameRow> changed_;
  static constexpr size_t kBucketsAnOp = 8;
  std::shared_ptr<storage::Batch> open_;
  std::deque<SealedBatch> closed_;    // not handed out yet
  std::deque<SealedBatch> underway_;  // handed out, not durable yet
  // A batch is mostly about as large as the one before, so its memory is reserved at once.
  static constexpr size_t kOpsExpectedMax = 4096;
  static constexpr size_t kBytesExpectedMax = size_t{1} << 20;
  size_t ops_expected_ = 0;
  size_t bytes_expected_ = 0;
  uint64_t committed_;
  uint64_t open_sequence_;
  mutable uint64_t touched_ = 0;
};

}  // namespace delayd::engine

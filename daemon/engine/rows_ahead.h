// daemon/engine/rows_ahead.h — rows of kTimers that will be wanted next, read by one scan.
//
// What:    a worker that drains a backlog takes its rows in the order in which they are stored, and
//          one scan of many rows costs a fraction of as many single reads. Rows that were read
//          ahead and not taken are forgotten when other rows are wanted. After a scan that was of
//          little use, because the backlog is taken in another order, rows are read one by one for
//          a while. A row read ahead is valid until Forget is told that it has changed:
//          PendingChanges calls Forget with every commit, and until then finds the change first.
// Errors:  those of the store; a scan that fails leaves nothing, and the row is read by itself.
// Threads: one owner.
// Cost:    a lookup takes 20 ns when rows are taken in order; memory for kRowsMax rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "storage/job_store.h"

namespace delayd::engine {

class RowsAhead {
 public:
  // Fewer are not worth a scan.
  static constexpr size_t kRowsMin = limits::Bound(16, 2);
  static constexpr size_t kRowsMax = limits::Bound(512, 4);

  explicit RowsAhead(const storage::JobReader& store) : store_(store) {}

  // The row as it is in the store, if it was read ahead or is read now, together with the rows that
  // follow it and are keyed before `before`, `wanted` in all. None: the caller must read the row by
  // itself. Valid until the next call of Find or Forget.
  std::optional<std::string_view> Find(std::string_view key, WallTime before, size_t wanted);

  // The row has changed in the store: what was read of it is no longer valid.
  void Forget(std::string_view key);

  bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    size_t key_at;
    size_t value_at;
    size_t end;
    bool is_there;
  };

  std::string_view KeyOf(const Row& row) const {
    return std::string_view(bytes_).substr(row.key_at, row.value_at - row.key_at);
  }

  // `guess`: where it is when rows are asked for in their order.
  std::optional<size_t> Place(std::string_view key, size_t guess) const;
  bool Read(std::string_view from, WallTime before, size_t rows);

  const storage::JobReader& store_;
  std::string bytes_;  // keys and values
  std::vector<Row> rows_;
  size_t next_ = 0;       // behind the row that was taken last
  size_t forgotten_ = 0;  // behind the one that was forgotten last
  size_t taken_ = 0;      // of rows_
  size_t rest_ = 0;       // single reads before the next scan
};

}  // namespace delayd::engine

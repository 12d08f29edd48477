// storage/job_store.h — the door to the durable truth: what every ordered store can do, and no
// more.
//
// Units:   keys and values are bytes; storage/keys.h and storage/record.h give them meaning.
// Errors:  kNotFound for an absent key; kDataLoss for bytes that fail a checksum; kUnavailable,
//          kResourceExhausted or kInternal for I/O. After a failed Commit the outcome is unknown
//          and the store refuses every further one: the process must end and a restart reads what
//          is true. The same holds after an error in the background (a flush that failed): the next
//          Commit says so.
// Threads: Commit from one thread at a time; Get and Scan from any thread at any time before Close,
//          and they see every batch whose Commit has returned, and no batch that is not durable.
// Cost:    Get O(log n); Scan O(rows visited), and it holds nothing open when it has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "storage/batch.h"

namespace delayd::storage {

// Tables whose head is full of tombstones: a scan of them starts at a key, never at the beginning.
constexpr bool NeedsScanStart(Table table) {
  return table == Table::kTimers || table == Table::kByQueue || table == Table::kDone;
}

// The rows with from <= key < to.
struct KeyRange {
  std::string from;
  std::string to;
};

class JobReader {
 public:
  virtual ~JobReader() = default;

  virtual Status Get(Table table, std::string_view key, std::string* value) const = 0;

  // Calls `visit` for the rows with from <= key < to, in order of key (an empty `to` has no end),
  // until it returns false. The views are valid during the call only. `from` must not be empty for
  // kTimers, kByQueue and kDone: their head is full of tombstones, and the low-water mark is where
  // they begin.
  using Visitor = std::function<bool(std::string_view key, std::string_view value)>;
  virtual Status Scan(Table table,
                      std::string_view from,
                      std::string_view to,
                      const Visitor& visit) const = 0;

  // A Scan for rows that will probably be wanted. It may end early, and does not say so, where to
  // pass over deleted rows would cost more than to read the wanted ones one by one.
  virtual Status ScanAhead(Table table,
                           std::string_view from,
                           std::string_view to,
                           const Visitor& visit) const {
    return Scan(table, from, to, visit);
  }

  // About how many rows of kTimers or kByQueue there are in each range. Here: exactly, by a scan.
  virtual StatusOr<std::vector<uint64_t>> EstimateRows(Table table,
                                                       std::span<const KeyRange> ranges) const;
};

// What every access to a store answers after its Close.
Status StoreClosed();

class JobStore : public JobReader {
 public:
  // Called at most once by a Commit, on its thread, as soon as the batch is on stable storage. From
  // then on a restart has the batch, whatever Commit returns; reads may not see it yet.
  using OnDurable = std::function<void()>;

  // Returns when the batch is on stable storage and can be read. The engine has put the batch's
  // number into it (kMeta "batch_no"). An empty batch is a success and touches nothing.
  virtual Status Commit(const Batch& batch, const OnDurable& on_durable) = 0;

  Status Commit(const Batch& batch) { return Commit(batch, {}); }

  // The error that the next Commit would be refused with. A store can stop between two commits;
  // where none come, only this tells. From any thread.
  virtual Status Check() { return OkStatus(); }

  // Orderly end. Nothing is lost without it, but the next open has more to replay. Idempotent.
  virtual Status Close() = 0;
};

}  // namespace delayd::storage

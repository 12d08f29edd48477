// storage/job_store.h — the interface to the durable store: what every ordered store can do, and no
// more.
//
// Units:   keys and values are bytes; storage/keys.h and storage/record.h give them meaning.
// Errors:  kNotFound for an absent key; kDataLoss for bytes that fail a checksum; kUnavailable,
//          kResourceExhausted or kInternal for I/O. After a failed Commit the outcome is unknown
//          and the store refuses every further one: the process must end, and a restart reads what
//          is true. The same holds after an error in the background (a flush that failed): the next
//          Commit reports it.
// Threads: Commit from one thread at a time; Get and Scan from any thread at any time before Close.
//          They see every batch whose Commit has returned, and no batch that is not durable.
// Cost:    Get O(log n); Scan O(rows visited), and it holds nothing open once it has returned.
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

// Tables whose beginning is full of tombstones: a scan of them starts at a key, never at the
// beginning.
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

  // Calls `visit` for the rows with from <= key < to, in key order (an empty `to` means no end),
  // until it returns false. The views are valid only during the call. `from` must not be empty for
  // kTimers, kByQueue and kDone: their beginning is full of tombstones, and their rows begin at the
  // low-water mark.
  using Visitor = std::function<bool(std::string_view key, std::string_view value)>;
  virtual Status Scan(Table table,
                      std::string_view from,
                      std::string_view to,
                      const Visitor& visit) const = 0;

  // A Scan for rows that will probably be wanted. Where skipping deleted rows would cost more than
  // reading the wanted ones one by one, it may end early, and does not say so.
  virtual Status ScanAhead(Table table,
                           std::string_view from,
                           std::string_view to,
                           const Visitor& visit) const {
    return Scan(table, from, to, visit);
  }

  // About how many rows of kTimers, kByQueue or kDead there are in each range. This implementation
  // counts them exactly, by a scan.
  virtual StatusOr<std::vector<uint64_t>> EstimateRows(Table table,
                                                       std::span<const KeyRange> ranges) const;
};

// The answer of every access to a store after its Close.
Status StoreClosed();

class JobStore : public JobReader {
 public:
  // Commit calls it at most once, on its own thread, as soon as the batch is on stable storage.
  // From then on a restart finds the batch, whatever Commit returns; reads may not see it yet.
  using OnDurable = std::function<void()>;

  // Returns when the batch is on stable storage and can be read. The engine has put the batch's
  // number into it (kMeta "batch_no"). An empty batch succeeds and touches nothing.
  virtual Status Commit(const Batch& batch, const OnDurable& on_durable) = 0;

  Status Commit(const Batch& batch) { return Commit(batch, {}); }

  // The error that the next Commit would be refused with. A store can stop between two commits; if
  // none come, only this call tells. From any thread.
  virtual Status Check() { return OkStatus(); }

  // Orderly shutdown. Nothing is lost without it, but the next open has more to replay. Idempotent.
  virtual Status Close() = 0;
};

}  // namespace delayd::storage

// storage/tombstone_sweeper.h — removes the tombstones that a mass cancel leaves behind. Private to
// the room.
//
// What:    a scan passes over deleted rows at about 0.4 µs each. Nobody scans below the low-water
//          mark, but cancelled jobs due far in the future lie above it, and without traffic RocksDB
//          never compacts them away. The same goes for jobs that were acked before an older one,
//          until the mark has passed them, and for dead jobs that were cancelled or kicked. Once
//          such rows are many, and a good part of the rows around them, the ranges they lie in are
//          compacted on a separate thread, while commits go on; if no more of them come, a few
//          suffice. Each table has its own sweeper: rows that lie together in one table are far
//          apart in another.
// Errors:  none: a failed compaction is noticed by the store's listener. One that the disk had no
//          room for, or that found writes stalled, is tried again later, or when more deleted rows
//          have come.
// Threads: NoteBatch from the committing thread, one call at a time, and the destructor; one thread
//          inside.
// Cost:    one comparison per deleted row; a compaction, which is rare, rewrites the range.
// Source:  docs/decisions/0026-sweeping-after-a-mass-cancel.md
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/db.h>

#include "base/status.h"
#include "storage/batch.h"
#include "storage/job_store.h"
#include "storage/merge_room.h"
#include "storage/optional_thread.h"

namespace delayd::storage {

// Deleted rows above the low-water mark: how many, and between which keys.
class DeletedRows {
 public:
  // The rows from one key to another; both keys belong to deleted rows.
  struct Part {
    std::string first;
    std::string last;
    uint64_t count = 0;
  };

  // `due_at`: the offset in a key of the time that the mark is compared with; none: the mark passes
  // no row of this table.
  explicit DeletedRows(std::optional<size_t> due_at) : due_at_(due_at) {}

  // Is the row below `mark`? A mark is given as the time at the start of a timer key.
  bool IsPassed(std::string_view key, uint64_t mark) const;
  void Add(std::string_view key);
  // Drops the rows that `mark` has passed. From then on all figures are estimates, from a sample of
  // the keys.
  void Forget(uint64_t mark);

  uint64_t count() const { return count_; }

  size_t sampled() const { return sample_.size(); }

  const std::string& first() const { return first_; }

  const std::string& last() const { return last_; }

  // In key order, with about as many rows in each: a few parts, or one if there are not many rows.
  std::vector<Part> Parts() const;
  // Drops the rows between the part's keys.
  void Forget(const Part& part);
  void Add(DeletedRows others);

 private:
  static constexpr uint64_t kSampleEvery = 16;  // at first
  static constexpr size_t kSampleMax = 16'384;  // about 1 MiB
  static constexpr size_t kPartsMax = 16;
  static constexpr size_t kSampleAPart = 64;

  void CountSample();
  void ThinSample();  // halves it

  std::optional<size_t> due_at_;
  uint64_t count_ = 0;
  std::string first_;
  std::string last_;
  uint64_t sample_every_ = kSampleEvery;
  std::vector<std::string> sample_;  // every n-th key
};

class TombstoneSweeper {
 public:
  // About how many rows each range has; callable from any thread.
  using EstimateRows =
      std::function<StatusOr<std::vector<uint64_t>>(Table table, std::span<const KeyRange> ranges)>;

  // `deletes_min`: fewer deleted rows are not compacted; once none has been deleted for half a
  // second, a fiftieth of that suffices. The database, the handles, `room` and `turn` must outlive
  // the sweeper. Sweepers that share a turn sweep one after the other.
  TombstoneSweeper(rocksdb::DB* db,
                   rocksdb::ColumnFamilyHandle* family,
                   Table table,
                   uint64_t deletes_min,
                   MergeRoom* room,
                   std::mutex* turn,
                   EstimateRows estimate);
  ~TombstoneSweeper();
  TombstoneSweeper(const TombstoneSweeper&) = delete;
  TombstoneSweeper& operator=(const TombstoneSweeper&) = delete;

  // Reports a batch that has just become durable; a batch without deletes need not be reported.
  void NoteBatch(const Batch& batch);

  uint64_t sweeps_done() const { return done_.load(); }

 private:
  using Parts = std::vector<DeletedRows::Part>;

  void MoveMark(const Batch& batch);
  Parts WorthSweeping(const DeletedRows& deletes, bool is_quiet) const;
  Parts DenseParts(const DeletedRows& deletes, bool is_quiet) const;
  void Run();
  bool AwaitQuiet(std::unique_lock<std::mutex>* lock);
  bool HasRoom(std::unique_lock<std::mutex>* lock) const;
  void Look(std::unique_lock<std::mutex>* lock, bool is_quiet);
  bool Sweep(const DeletedRows::Part& part);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const Table table_;
  const uint64_t deletes_min_;
  const uint64_t rest_min_;  // the minimum when it is quiet
  MergeRoom* const room_;
  std::mutex* const turn_;  // taken before mutex_
  const EstimateRows estimate_;

  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;

  // ---- Guarded by mutex_ ----
  bool wanted_ = false;  // a look at the deleted rows
  bool ending_ = false;
  uint64_t mark_ = 0;    // the low-water mark, as the time at the start of a timer key
  DeletedRows deletes_;  // since the last sweep began
  uint64_t next_look_;   // look when there are this many deletes; at least deletes_min_
  uint64_t next_rest_;   // look when it is quiet and there are this many; at least rest_min_
  std::chrono::milliseconds retry_{0};  // 0: the last look had room for all its sweeps

  OptionalThread thread_;  // started with the first deletes that may be swept
};

}  // namespace delayd::storage

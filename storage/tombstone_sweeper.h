// storage/tombstone_sweeper.h — takes away what a mass cancel leaves behind. Private to the room.
//
// What:    a scan passes over deleted rows at about 0.4 µs each. Below the low-water mark nobody
//          scans; but far jobs that are cancelled lie above it, and without traffic RocksDB lets
//          them lie. So do jobs that were acked before an older one, until the mark has passed
//          them, and dead ones that were cancelled or kicked. When they have become many, and a
//          good part of the rows among which they lie, the ranges they lie in are compacted, on a
//          thread of its own, while commits go on; when no more of them come, a few suffice. Each
//          table has a sweeper: what lies together in one is far apart in another.
// Errors:  none: a compaction that fails is noticed by the store's listener. What the disk had no
//          room for is looked at again when it has, or when more have come.
// Threads: NoteBatch from whoever commits, one at a time, and the destructor; one thread inside.
// Cost:    a comparison a deleted row; a compaction rewrites the range, seldom.
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
  // Of the rows from one key to another, both of them deleted.
  struct Part {
    std::string first;
    std::string last;
    uint64_t count = 0;
  };

  // `due_at`: where the time is in a key that the mark is about; none: it passes no row.
  explicit DeletedRows(std::optional<size_t> due_at) : due_at_(due_at) {}

  // Whether the row lies below `mark`, as the beginning of a timer key.
  bool IsPassed(std::string_view key, uint64_t mark) const;
  void Add(std::string_view key);
  // What `mark` has passed counts no more. From here on all is an estimate, from every
  // kSampleEvery-th key.
  void Forget(uint64_t mark);

  uint64_t count() const { return count_; }

  const std::string& first() const { return first_; }

  const std::string& last() const { return last_; }

  // In the order of the keys, about equally many in each: a few, or one when there are not many.
  std::vector<Part> Parts() const;
  // What is between its keys counts no more.
  void Forget(const Part& part);
  void Add(const DeletedRows& others);

 private:
  static constexpr uint64_t kSampleEvery = 16;
  static constexpr size_t kPartsMax = 16;
  static constexpr size_t kSampleAPart = 64;

  void CountSample();

  std::optional<size_t> due_at_;
  uint64_t count_ = 0;
  std::string first_;
  std::string last_;
  std::vector<std::string> sample_;
};

class TombstoneSweeper {
 public:
  // About how many rows each range has; may be called from any thread.
  using EstimateRows =
      std::function<StatusOr<std::vector<uint64_t>>(Table table, std::span<const KeyRange> ranges)>;

  // `deletes_min`: no compaction for fewer, or for fewer than a fiftieth of them when none has
  // been deleted for half a second. Database, handles, `room` and `turn` must outlive the sweeper.
  // Those that share a turn sweep one after the other.
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

  // A batch that has just become durable; one without deletes need not be told.
  void NoteBatch(const Batch& batch);

  uint64_t sweeps_done() const { return done_.load(); }

 private:
  using Parts = std::vector<DeletedRows::Part>;

  void MoveMark(const Batch& batch);
  Parts WorthSweeping(const DeletedRows& deletes, bool is_quiet) const;
  Parts DenseParts(const DeletedRows& deletes) const;
  void Run();
  bool AwaitQuiet(std::unique_lock<std::mutex>* lock);
  bool HasRoom(std::unique_lock<std::mutex>* lock) const;
  void Look(std::unique_lock<std::mutex>* lock, bool is_quiet);
  bool Sweep(const DeletedRows::Part& part);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const Table table_;
  const uint64_t deletes_min_;
  const uint64_t rest_min_;  // when it is quiet
  MergeRoom* const room_;
  std::mutex* const turn_;  // taken before mutex_
  const EstimateRows estimate_;

  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;

  // ---- Guarded by mutex_ ----
  bool wanted_ = false;  // a look at them
  bool ending_ = false;
  uint64_t mark_ = 0;    // the low-water mark, as the beginning of a timer key
  DeletedRows deletes_;  // since the last sweep began
  uint64_t next_look_;   // at so many deletes; at least deletes_min_
  uint64_t next_rest_;   // so many are looked at when it is quiet; at least rest_min_
  std::chrono::milliseconds retry_{0};  // 0: the last look found room for all it swept

  OptionalThread thread_;  // started with the first deletes that may be swept
};

}  // namespace delayd::storage

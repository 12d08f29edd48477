// storage/tombstone_sweeper.h — takes away what a mass cancel leaves behind. Private to the room.
//
// What:    a scan passes over deleted rows at about 0.4 µs each. Below the low-water mark nobody
//          scans; but far jobs that are cancelled lie above it, and without traffic RocksDB lets
//          them lie. So do jobs that were acked before an older one, until the mark has passed
//          them. When they have become many, and a good part of all rows, the range they lie in is
//          compacted, on a thread of its own, while commits go on; when no more of them come, a few
//          suffice.
// Errors:  none: a compaction that fails is noticed by the store's listener.
// Threads: NoteBatch from whoever commits, one at a time, and the destructor; one thread inside.
// Cost:    a comparison a deleted timer; a compaction rewrites the range, seldom.
// Source:  docs/decisions/0026-sweeping-after-a-mass-cancel.md
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rocksdb/db.h>

#include "storage/batch.h"

namespace delayd::storage {

// Deleted timers above the low-water mark: how many, and between which keys.
class DeletedTimers {
 public:
  void Add(std::string_view key);
  // What lies below `mark`, as the beginning of a timer key, counts no more. An estimate from here
  // on, of every kSampleEvery-th key.
  void Forget(uint64_t mark);

  uint64_t count() const { return count_; }

  const std::string& first() const { return first_; }

  const std::string& last() const { return last_; }

 private:
  static constexpr uint64_t kSampleEvery = 16;

  uint64_t count_ = 0;
  std::string first_;
  std::string last_;
  std::vector<uint64_t> sample_;  // beginnings of keys
};

class TombstoneSweeper {
 public:
  // `deletes_min`: no compaction for fewer, or for fewer than a fiftieth of them when none has
  // been deleted for half a second. Database and handles must outlive the sweeper.
  TombstoneSweeper(rocksdb::DB* db,
                   const std::vector<rocksdb::ColumnFamilyHandle*>* families,
                   uint64_t deletes_min);
  ~TombstoneSweeper();
  TombstoneSweeper(const TombstoneSweeper&) = delete;
  TombstoneSweeper& operator=(const TombstoneSweeper&) = delete;

  // A batch that has just become durable.
  void NoteBatch(const Batch& batch);

  uint64_t sweeps_done() const { return done_.load(); }

 private:
  void MoveMark(const Batch& batch);
  bool AreWorthSweeping(uint64_t min);
  void Run();
  void AwaitQuiet(std::unique_lock<std::mutex>* lock);
  void Sweep(const DeletedTimers& deletes);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* const families_;
  const uint64_t deletes_min_;
  const uint64_t rest_min_;  // when it is quiet

  uint64_t next_look_ = 0;  // at so many deletes; of whoever commits

  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;

  // ---- Guarded by mutex_ ----
  bool wanted_ = false;
  bool ending_ = false;
  uint64_t mark_ = 0;      // the low-water mark, as the beginning of a timer key
  DeletedTimers deletes_;  // since the last sweep began
  uint64_t next_rest_;     // so many are looked at when it is quiet; at least rest_min_

  std::thread thread_;  // started with the first deletes that may be swept
};

}  // namespace delayd::storage

// storage/tombstone_sweeper.h — takes away what a mass cancel leaves behind. Private to the room.
//
// What:    a scan passes over deleted rows at about 0.4 µs each. Below the low-water mark nobody
//          scans; but far jobs that are cancelled lie above it, and without traffic RocksDB lets
//          them lie. When they have become many, and a good part of all rows, the range they lie in
//          is compacted, on a thread of its own, while commits go on; when no more of them come,
//          a few suffice.
// Errors:  none: a compaction that fails is noticed by the store's listener.
// Threads: NoteBatch and the destructor from the committer's thread; one thread inside.
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

class TombstoneSweeper {
 public:
  // `deletes_min`: no compaction for fewer, or for fewer than a tenth of them when none has been
  // deleted for kQuiet. Database and handles must outlive the sweeper.
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
  // Deleted timers above the low-water mark, and the keys between which they lie.
  struct Deletes {
    uint64_t count = 0;
    std::string first;
    std::string last;

    void Add(std::string_view key);
  };

  void MoveMark(const Batch& batch);
  bool ManyOfAllRows(uint64_t deletes) const;
  void Run();
  void AwaitQuiet(std::unique_lock<std::mutex>* lock);
  void Sweep(const Deletes& deletes);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* const families_;
  const uint64_t deletes_min_;

  // ---- The committer's ----
  std::string low_water_mark_;  // as the beginning of a timer key
  uint64_t next_look_ = 0;      // at so many deletes

  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;  // guarded by mutex_
  bool ending_ = false;  // guarded by mutex_
  Deletes deletes_;      // since the last sweep began; guarded by mutex_
  uint64_t next_rest_;   // so many are swept when it is quiet; guarded by mutex_
  std::thread thread_;   // started with the first deletes that may be swept
};

}  // namespace delayd::storage

// storage/rest_flush.h — flushes and frees the memory of an idle store, which then has little to
// replay. Private to the room.
//
// What:    RocksDB writes a memtable to a file when it is full. After a burst the last memtables
//          stay in memory, and their rows in the write-ahead log, which the next start after a
//          crash replays, until as much again has been written. Once commits have become few, this
//          class flushes those memtables and returns unused memory to the system. If writes are
//          stalled by compactions, it looks again after a period: one more file would stall them
//          for longer.
// Units:   bytes of keys and values.
// Errors:  none; a failed flush is noticed by the store's listener. On a disk without room nothing
//          is flushed, since a failed flush ends the store.
// Threads: NoteBatch from the committing thread, one call at a time, and the destructor; one thread
//          inside.
// Cost:    one addition per batch; the thread sleeps until enough was written.
// Source:  docs/decisions/0089-a-store-that-rests.md
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <rocksdb/db.h>

#include "storage/batch.h"
#include "storage/optional_thread.h"

namespace delayd::storage {

class RestFlush {
 public:
  struct Options {
    uint64_t bytes_min;  // less than this stays in memory
    // The store is at rest when less than an eighth of bytes_min was written in this time.
    std::chrono::milliseconds period;
  };

  // `has_room`: may a flush begin? The database and the handles must outlive this object.
  RestFlush(rocksdb::DB* db,
            const std::vector<rocksdb::ColumnFamilyHandle*>* families,
            Options options,
            std::function<bool()> has_room);
  ~RestFlush();
  RestFlush(const RestFlush&) = delete;
  RestFlush& operator=(const RestFlush&) = delete;

  // Reports a batch that has just become durable.
  void NoteBatch(const Batch& batch);

  // How often the store has come to rest after enough was written.
  uint64_t rests() const { return rests_.load(); }

 private:
  void Run();
  bool AwaitRest(std::unique_lock<std::mutex>* lock);
  uint64_t BytesInMemory() const;

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*>* const families_;
  const Options options_;
  const std::function<bool()> has_room_;

  std::atomic<uint64_t> written_ = 0;  // since the store was opened
  std::atomic<uint64_t> wake_at_;      // the thread looks when this much was written
  std::atomic<uint64_t> rests_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;  // guarded by mutex_, as is the next one
  bool ending_ = false;
  OptionalThread thread_;  // used by the committing thread; started when first needed
};

}  // namespace delayd::storage

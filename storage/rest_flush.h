// storage/rest_flush.h — a store that rests keeps little in memory and little to replay. Private to
// the room.
//
// What:    RocksDB writes a memtable to a file when it is full. After a rush the last ones stay in
//          memory, and their rows in the log, which the next start after a crash replays, until
//          somebody puts as much again. When commits have become few, they are written at once,
//          and memory that nothing uses goes back to the system. Where writes wait for merges it is
//          looked at again after a period: one file more would have them wait for longer.
// Units:   bytes of keys and values.
// Errors:  none; a flush that fails is noticed by the store's listener. On a disk without room for
//          it there is no flush, since one that fails ends the store.
// Threads: NoteBatch from whoever commits, one at a time, and the destructor; one thread inside.
// Cost:    an addition a batch; the thread sleeps until enough was written.
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
    uint64_t bytes_min;  // less in memory is left there
    // The store rests when less than an eighth of bytes_min was written in this time.
    std::chrono::milliseconds period;
  };

  // `has_room`: may a flush be begun? Database and handles must outlive it.
  RestFlush(rocksdb::DB* db,
            const std::vector<rocksdb::ColumnFamilyHandle*>* families,
            Options options,
            std::function<bool()> has_room);
  ~RestFlush();
  RestFlush(const RestFlush&) = delete;
  RestFlush& operator=(const RestFlush&) = delete;

  // A batch that has just become durable.
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
  std::atomic<uint64_t> wake_at_;      // when so much was written the thread looks
  std::atomic<uint64_t> rests_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;  // guarded by mutex_, as what follows
  bool ending_ = false;
  OptionalThread thread_;  // the committer's; started when it is first wanted
};

}  // namespace delayd::storage

// storage/merge_room.h — merges of tables leave room on the disk for what must be written. Private
// to the room.
//
// What:    a merge (RocksDB says compaction) writes its outcome before what went into it is
//          removed. On a disk that is nearly full it would take the last of it, and a flush or a
//          log without room ends the store. So a merge that may not fit gets no file, and one under
//          way is stopped where little is left. To RocksDB it has failed for want of room, which
//          loses nothing: what it wrote is removed, and a second later the next is tried. A sweep
//          is tried again by its sweeper, when there is as much as it needed. What is free by df
//          may be kept back by a quota or a thin disk: so the disk itself is asked before the first
//          byte, and what it refused, then or later, is tried again after a minute.
// Units:   bytes.
// Errors:  none: that of a merge without room is taken back before RocksDB stops for it. The first
//          that waits is told (OnMergeRefused). A disk that cannot be asked has room.
// Threads: RocksDB's own call the listener and, by the file system, MayBegin and MayGoOn; the
//          figures any.
// Cost:    a look at each table that goes into a merge, one question to the disk
//          (storage/disk_room.h), and one statvfs(2) a MiB of its outcome.
// Source:  docs/decisions/0107-merges-leave-room.md
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>

#include "storage/disk_room.h"

namespace delayd::storage {

class MergeRoom final : public rocksdb::EventListener {
 public:
  using Clock = std::chrono::steady_clock;
  using Ask = int (*)(const std::string& directory, uint64_t bytes);

  // `disk` is what lies below the store's own file systems; `kept_bytes` no merge takes: as much as
  // a flush may write. What the disk itself refused, which `ask` tells, waits for `retry`.
  MergeRoom(std::shared_ptr<rocksdb::FileSystem> disk,
            std::string directory,
            uint64_t kept_bytes,
            Ask ask = AskForRoom,
            Clock::duration retry = std::chrono::minutes(1));

  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& merge) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& merge) override;
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& flush) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;

  // Is this thread in a merge?
  bool IsMerging() const;
  // Of a thread that is in one: may it make a file, and write on in it?
  bool MayBegin();
  bool MayGoOn();

  // Is there so much that files may be allocated ahead?
  bool HasPlenty() const { return Free() >= 4 * kept_bytes_; }

  // Did the last merge of the table find no room, and is it too early to try again?
  bool IsWaiting(const std::string& table);
  uint64_t CountWaiting();  // tables

  // Failed merges that RocksDB counts among its errors.
  uint64_t refusals() const { return refusals_.load(); }

  // Have files come or gone since it was asked last, or a merge been refused?
  bool TakeChange();

 private:
  struct Merge {
    std::string table;
    std::vector<std::string> inputs;
    uint64_t read = 0;
    uint64_t bytes = 0;   // that it may write
    uint64_t needed = 0;  // free, for that and what must stay
    bool fits = true;
    bool asked = false;    // the disk, which has room
    bool refused = false;  // by us, and told
  };

  struct Waiting {
    uint64_t bytes = 0;  // that the last merge may write
    // Of one that the disk itself refused, whatever is free.
    std::optional<Clock::time_point> retry_at = {};
  };

  enum class Lack : uint8_t { kSpace, kSpaceOnItsWay, kOfTheDisk };

  uint64_t Free() const;
  uint64_t Reads(const rocksdb::CompactionJobInfo& merge) const;
  uint64_t MayWrite(const rocksdb::CompactionJobInfo& merge, uint64_t read) const;
  uint64_t Needed(uint64_t bytes) const;

  bool Fits(uint64_t bytes) const { return Needed(bytes) <= Free(); }

  bool IsEarly(const std::string& table) const;
  void DropWhatFits();
  Merge Own() const;
  bool DiskHasRoom(const Merge& merge);
  void Refuse(const Merge& merge, Lack lack);
  std::string Tell(const Merge& merge, Lack lack) const;

  const std::shared_ptr<rocksdb::FileSystem> disk_;
  const std::string directory_;
  const uint64_t kept_bytes_;
  const Ask ask_;
  const Clock::duration retry_;
  std::atomic<uint64_t> refusals_ = 0;
  std::atomic<bool> changed_ = false;

  mutable std::mutex mutex_;
  // ---- Guarded by mutex_ ----
  std::map<std::thread::id, Merge> merges_;
  std::map<std::string, Waiting> waiting_;  // by table
  // By table, what went into the last merge that was stopped on its way: so much for the guess.
  std::map<std::string, std::vector<std::string>> stopped_;
};

// Asks `room` before a table is written by a merge, and before files are allocated ahead.
std::shared_ptr<rocksdb::FileSystem> NewFilesWithRoom(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::shared_ptr<MergeRoom> room);

}  // namespace delayd::storage

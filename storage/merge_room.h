// storage/merge_room.h — keeps merges of tables from using up the disk space that other writes
// need. Private to the room.
//
// What:    a merge (RocksDB's compaction) writes its output before its inputs are removed. On a
//          nearly full disk it would take the last of the space, and a flush or a log without room
//          ends the store. So a merge that may not fit gets no output file, and a running one is
//          stopped when little space is left. To RocksDB it has failed with "no space", which loses
//          nothing: its output is removed, and the next merge is tried a second later. A sweep is
//          retried by its sweeper, once as much space is free as it needed. RocksDB may report more
//          free space than a quota or a thin-provisioned disk really allows, so the disk itself is
//          probed before the first byte; a refusal, then or later, is retried after a minute.
// Units:   bytes.
// Errors:  none: the error of a merge without room is cleared before RocksDB stops because of it.
//          The first merge that has to wait is reported (OnMergeRefused). A disk that cannot be
//          asked counts as having room.
// Threads: RocksDB's own threads call the listener and, through the file system, MayBegin and
//          MayGoOn; any thread may read the figures.
// Cost:    a stat of each table that goes into a merge, one probe of the disk
//          (storage/disk_room.h), and one statvfs(2) per MiB of output.
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

  // `disk` is the file system below the store's own ones. `kept_bytes` is what every merge must
  // leave free: as much as a flush may write. `ask` probes the disk; what it refuses waits for
  // `retry`.
  MergeRoom(std::shared_ptr<rocksdb::FileSystem> disk,
            std::string directory,
            uint64_t kept_bytes,
            Ask ask = AskForRoom,
            Clock::duration retry = std::chrono::minutes(1));

  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& merge) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& merge) override;
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& flush) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;

  // Is this thread running a merge?
  bool IsMerging() const;
  // For a thread that runs one: may it create a file, and may it write more to it?
  bool MayBegin();
  bool MayGoOn();

  // Is there as much as a flush may write?
  bool HasRoomToFlush() const { return Free() >= kept_bytes_; }

  // Would a merge that may write so much fit now?
  bool HasRoomToMerge(uint64_t bytes) const;

  // Is there so much that files may be allocated ahead?
  bool HasPlenty() const { return Free() >= 4 * kept_bytes_; }

  // Did the last merge of the table find no room, and is it too early to try again?
  bool IsWaiting(const std::string& table);
  uint64_t CountWaiting();  // tables

  // Failed merges that RocksDB counts among its errors.
  uint64_t refusals() const { return refusals_.load(); }

  // Has a flush or merge ended, or a merge been refused, since the last call?
  bool TakeChange();

 private:
  struct Merge {
    std::string table;
    std::vector<std::string> inputs;
    uint64_t read = 0;
    uint64_t bytes = 0;   // the most that it may write
    uint64_t needed = 0;  // free space needed for that and for what must stay
    bool fits = true;
    bool asked = false;    // the disk was probed and has room
    bool refused = false;  // by us, and reported
  };

  struct Waiting {
    uint64_t bytes = 0;  // the most that the last merge may write
    // Set if the disk itself refused the merge, however much seems to be free.
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
  // By table: the inputs of the last merge that was stopped halfway. It wrote more than was
  // estimated.
  std::map<std::string, std::vector<std::string>> stopped_;
};

// Asks `room` before a merge writes a table, and before files are allocated ahead.
std::shared_ptr<rocksdb::FileSystem> NewFilesWithRoom(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::shared_ptr<MergeRoom> room);

}  // namespace delayd::storage

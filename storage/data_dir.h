// storage/data_dir.h — the directory a store lives in: made, locked, and known to be ours.
//
//   LOCK.delayd   held with flock for the life of the process; holds its pid
//   FORMAT        "delayd-store schema 1": written last when a store is made, so from then on a
//                 missing RocksDB file is damage and never "a new, empty store"
//
// Errors:  kNotFound "no_store"; kFailedPrecondition "data_dir_in_use", "newer_schema",
//          "data_dir_foreign"; kDataLoss "damaged_store"; kPermissionDenied or kUnavailable for
//          what the system refuses.
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace delayd::storage {

class DataDir {
 public:
  // Makes the directory (0700, and durable in its parent) when it is missing, and locks it. With
  // `must_exist` as RequireStore first: nothing is made.
  static StatusOr<DataDir> Acquire(const std::string& path, bool must_exist = false);

  // Ok when a store was made here, whole; else kNotFound, or what HoldsStore refuses. Makes
  // nothing, not even the lock file: on the mount point of a disk that is not there nothing shall
  // be left.
  static Status RequireStore(const std::string& path);

  // Lets the next process in; nothing may be written here any more.
  void Unlock() { lock_ = UniqueFd(); }

  // In a directory that is another's: takes away the lock file if Acquire made it.
  void RemoveOwnLock() const;

  const std::string& path() const { return path_; }

  // True when a store was made here, whole; false when it is empty or its making was cut short.
  // A directory that holds something else is refused.
  StatusOr<bool> HoldsStore() const;

  Status NewerSchema(uint64_t schema) const;

 private:
  Status CheckNothingToLose() const;
  Status CheckNoJobs() const;

  DataDir(std::string path, UniqueFd lock, bool made_lock)
      : path_(std::move(path)), lock_(std::move(lock)), made_lock_(made_lock) {}

  std::string path_;
  UniqueFd lock_;
  bool made_lock_ = false;
};

// kDataLoss "damaged_store" where a directory, a pipe or a link that leads nowhere stands in the
// place of a file that a store reads: to open a pipe would wait for ever, and "not found" would be
// taken for a store that is not there. Costs a look at the directory, and one at each of RocksDB's
// files.
Status CheckFiles(const std::string& directory);

// `what` is there without FORMAT: "it holds jobs".
Status FormatMissing(const std::string& directory, const std::string& what);

// `what` is wrong with CURRENT in a complete store: "is missing".
Status CurrentLost(const std::string& directory, const std::string& what);

// The store in it is complete and durable: from now on HoldsStore is true.
Status WriteFormatFile(const std::string& directory);

}  // namespace delayd::storage

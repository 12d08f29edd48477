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
  // Creates the directory (0700, and durable in its parent) if it is missing, and locks it. With
  // `must_exist` it first calls RequireStore, and creates nothing.
  static StatusOr<DataDir> Acquire(const std::string& path, bool must_exist = false);

  // Ok if the directory holds a completely created store; otherwise kNotFound, or the error of
  // HoldsStore. Creates nothing, not even the lock file: the mount point of a missing disk must
  // stay empty.
  static Status RequireStore(const std::string& path);

  // Lets the next process in; this one must not write here any more.
  void Unlock() { lock_ = UniqueFd(); }

  // For a directory that belongs to something else: removes the lock file if Acquire created it.
  void RemoveOwnLock() const;

  const std::string& path() const { return path_; }

  // True if a store was completely created here; false if the directory is empty or the creation
  // was cut short. A directory that holds something else is refused.
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

// kDataLoss "damaged_store" where a directory, a pipe or a dangling link stands in the place of a
// file that a store reads: opening a pipe would block for ever, and "not found" would be taken for
// a store that does not exist. Costs a listing of the directory and a stat of each of RocksDB's
// files.
Status CheckFiles(const std::string& directory);

// The error for a directory that has something ("it holds jobs") but no FORMAT.
Status FormatMissing(const std::string& directory, const std::string& what);

// The error for a directory without FORMAT whose logs are damaged too, as `logs` says: recover,
// which it names, takes the directory for no store.
Status FormatMissingToo(const Status& logs);

// The error for a complete store with something wrong about CURRENT ("is missing").
Status CurrentLost(const std::string& directory, const std::string& what);

// Records that the store is complete and durable: from now on HoldsStore is true.
Status WriteFormatFile(const std::string& directory);

}  // namespace delayd::storage

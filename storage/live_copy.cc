#include "storage/live_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rocksdb/file_system.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>

#include "base/crash_point.h"
#include "base/unique_fd.h"
#include "storage/files.h"
#include "storage/flush_now.h"
#include "storage/gradual_removal.h"
#include "storage/posix_error.h"
#include "storage/rocks_status.h"

namespace delayd::storage {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
// Syncing in steps of this size leaves less to write when a stop waits for a slow disk, or a commit
// for the same disk.
constexpr uint64_t kSyncBytes = uint64_t{8} << 20;
// The MANIFEST and the end of a log, which are copied even where tables are linked, hardly take
// more.
constexpr uint64_t kLittleBytes = uint64_t{8} << 20;

class LiveCopy {
 public:
  LiveCopy(rocksdb::FileSystem* files,
           std::string directory,
           const GoOn* go_on,
           const std::function<bool()>* has_room)
      : files_(files),
        directory_(std::move(directory)),
        go_on_(go_on),
        has_room_(has_room),
        piece_(kPieceBytes) {}

  // `from`: where the file's bytes can be read.
  Status Take(const rocksdb::LiveFileStorageInfo& file, const std::string& from) {
    const std::string to = directory_ + "/" + file.relative_filename;
    const bool is_final = !file.trim_to_size && file.replacement_contents.empty();
    if (links_ && is_final) {
      // Whatever prevents a link, a copy works or reports the cause.
      links_ = files_->LinkFile(from, to, rocksdb::IOOptions(), nullptr).ok();
    }
    if (links_ && is_final) {
      return OkStatus();
    }
    const UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!target.valid()) {
      return PosixError("cannot make", to);
    }
    return file.replacement_contents.empty()
               ? Copy(from, file, target.get(), to)
               : WriteAll(target.get(), file.replacement_contents, to);
  }

 private:
  Status MayGoOn(const std::string& to) const {
    if (!(*go_on_)()) {
      return Unavailable(
          "the backup was stopped before it was whole, and nothing is left of it; back up again "
          "when the daemon is back",
          "stopped");
    }
    if (copied_ >= kLittleBytes && !(*has_room_)()) {
      return ResourceExhausted("cannot write " + to +
                                   ": what is left of the disk is for the daemon itself, whose "
                                   "data lies there too; free some space, or back up to another "
                                   "disk",
                               "disk_full");
    }
    return OkStatus();
  }

  Status Copy(const std::string& from,
              const rocksdb::LiveFileStorageInfo& file,
              int target,
              const std::string& to) {
    std::unique_ptr<rocksdb::FSSequentialFile> source;
    DELAYD_RETURN_IF_ERROR(
        FromRocks(files_->NewSequentialFile(from, rocksdb::FileOptions(), &source, nullptr),
                  "cannot read " + from));
    uint64_t bytes = file.size;
    uint64_t unsynced = 0;
    while (bytes > 0) {
      DELAYD_RETURN_IF_ERROR(MayGoOn(to));
      rocksdb::Slice piece;
      DELAYD_RETURN_IF_ERROR(FromRocks(
          source->Read(
              std::min(bytes, kPieceBytes), rocksdb::IOOptions(), &piece, piece_.data(), nullptr),
          "cannot read " + from));
      if (piece.empty() && file.file_type == rocksdb::kWalFile) {
        break;  // the log was closed meanwhile, which cuts off the zeroes ahead
      }
      if (piece.empty()) {
        return DataLoss(from + " is shorter than it was; restore a backup", "damaged_store");
      }
      DELAYD_RETURN_IF_ERROR(WriteAll(target, {piece.data(), piece.size()}, to));
      bytes -= piece.size();
      copied_ += piece.size();
      unsynced += piece.size();
      if (bytes == 0 || unsynced >= kSyncBytes) {
        if (::fdatasync(target) != 0) {
          return PosixError("cannot fsync", to);
        }
        unsynced = 0;
      }
    }
    return OkStatus();
  }

  rocksdb::FileSystem* const files_;
  const std::string directory_;
  const GoOn* const go_on_;
  const std::function<bool()>* const has_room_;
  std::vector<char> piece_;
  uint64_t copied_ = 0;
  bool links_ = true;
};

std::string PathOf(const rocksdb::LiveFileStorageInfo& file) {
  return file.directory + "/" + file.relative_filename;
}

// RocksDB 9 has no `force` any more, and 7 and 8 take it for true where it is left out.
template <typename Db>
rocksdb::Status AllowRemovals(Db* db) {
  if constexpr (requires { db->EnableFileDeletions(false); }) {
    return db->EnableFileDeletions(/*force=*/false);
  } else {
    return db->EnableFileDeletions();
  }
}

// From Begin until End, or until it is destroyed, RocksDB removes no file.
class KeptFiles {
 public:
  explicit KeptFiles(rocksdb::DB* db) : db_(db) {}

  ~KeptFiles() { End(); }

  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

  Status Begin() {
    keeps_ = true;
    return FromRocks(db_->DisableFileDeletions(), "cannot keep the files");
  }

  void End() {
    if (std::exchange(keeps_, false)) {
      AllowRemovals(db_).PermitUncheckedError();
    }
  }

 private:
  rocksdb::DB* const db_;
  bool keeps_ = false;
};

// Gives each file a second hard link beside the first: what the store removes stays until it is
// copied, and the store goes on writing as usual. The next start removes links that a kill left.
class SecondNames {
 public:
  explicit SecondNames(rocksdb::FileSystem* files) : files_(files) {}

  ~SecondNames() {
    for (const std::string& name : names_) {
      Remove(name);
    }
  }

  SecondNames(const SecondNames&) = delete;
  SecondNames& operator=(const SecondNames&) = delete;

  static std::string Of(const rocksdb::LiveFileStorageInfo& file) {
    return file.directory + "/backup-" + file.relative_filename + std::string(kTrashEnding);
  }

  // False: not every file can have one.
  bool Give(const std::vector<rocksdb::LiveFileStorageInfo>& files) {
    return std::ranges::all_of(files, [this](const rocksdb::LiveFileStorageInfo& file) {
      const std::string name = Of(file);
      const bool is_given =
          file.replacement_contents.empty() &&
          files_->LinkFile(PathOf(file), name, rocksdb::IOOptions(), nullptr).ok();
      if (is_given) {
        names_.insert(name);
      }
      return is_given || !file.replacement_contents.empty();
    });
  }

  void Drop(const rocksdb::LiveFileStorageInfo& file) {
    if (names_.erase(Of(file)) > 0) {
      Remove(Of(file));
    }
  }

 private:
  // If it is the last name of a large file, the file is removed a piece at a time
  // (gradual_removal.h).
  void Remove(const std::string& name) {
    files_->DeleteFile(name, rocksdb::IOOptions(), nullptr).PermitUncheckedError();
  }

  rocksdb::FileSystem* const files_;
  std::set<std::string> names_;
};

StatusOr<std::vector<rocksdb::LiveFileStorageInfo>> LiveFiles(rocksdb::DB* db) {
  rocksdb::LiveFilesStorageInfoOptions options;
  // RocksDB's own flush would wait for compactions.
  options.wal_size_for_flush = std::numeric_limits<uint64_t>::max();
  std::vector<rocksdb::LiveFileStorageInfo> files;
  DELAYD_RETURN_IF_ERROR(
      FromRocks(db->GetLiveFilesStorageInfo(options, &files), "cannot name the files"));
  return files;
}

}  // namespace

Status CopyLiveFiles(rocksdb::DB* db,
                     const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                     const std::string& directory,
                     const GoOn& go_on,
                     const std::function<bool()>& has_room) {
  // Once the memtables are flushed, the copy needs only the end of a log.
  if (!MergesLag(db)) {
    DELAYD_RETURN_IF_ERROR(FromRocks(FlushNow(db, families), "cannot flush"));
  }
  KeptFiles kept(db);
  DELAYD_RETURN_IF_ERROR(kept.Begin());
  DELAYD_ASSIGN_OR_RETURN(const std::vector<rocksdb::LiveFileStorageInfo> files, LiveFiles(db));
  SecondNames names(db->GetFileSystem());
  // Without links, RocksDB must keep the files until all are copied.
  const bool named = names.Give(files);
  if (named) {
    kept.End();
  }
  DELAYD_CRASH_POINT("backup/named");
  LiveCopy copy(db->GetFileSystem(), directory, &go_on, &has_room);
  for (const rocksdb::LiveFileStorageInfo& file : files) {
    DELAYD_RETURN_IF_ERROR(copy.Take(file, named ? SecondNames::Of(file) : PathOf(file)));
    names.Drop(file);
  }
  return OkStatus();
}

}  // namespace delayd::storage

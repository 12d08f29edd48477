#include "tests/support/fault_file_system.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

namespace delayd::testing {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr size_t kCallKinds = 9;
constexpr uint64_t kSectorBytes = 512;

std::string Normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

const char* IoCallName(IoCall call) {
  switch (call) {
    case IoCall::kCreate:
      return "create";
    case IoCall::kAppend:
      return "append";
    case IoCall::kSync:
      return "sync";
    case IoCall::kDirectorySync:
      return "directory sync";
    case IoCall::kRename:
      return "rename";
    case IoCall::kDelete:
      return "delete";
    case IoCall::kTruncate:
      return "truncate";
    case IoCall::kOpenForRead:
      return "open";
    case IoCall::kRead:
      return "read";
  }
  return "?";
}

// What is known about the disk, shared by the file system and everything it handed out.
class FaultFileSystem::Disk {
 public:
  struct Verdict {
    IOStatus status;
    bool write_half = false;
  };

  // Every call asks first.
  Verdict Enter(IoCall call, const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const uint64_t of_kind = calls_[static_cast<size_t>(call)]++;
    const uint64_t of_all = all_calls_++;
    if (power_is_off_) {
      return {IOStatus::IOError("the power is off", path)};
    }
    if (!plan_.has_value() || plan_->at != (plan_->only.has_value() ? of_kind : of_all) ||
        (plan_->only.has_value() && *plan_->only != call)) {
      return {IOStatus::OK()};
    }
    const IoFault fault = plan_->fault;
    plan_.reset();
    struck_ = std::string(IoCallName(call)) + " of " + path;
    power_is_off_ = fault == IoFault::kPowerCut;
    if (fault == IoFault::kEnospc) {
      return {IOStatus::NoSpace("injected", path)};
    }
    return {IOStatus::IOError("injected", path), fault == IoFault::kShortWrite};
  }

  void Plan(std::optional<IoCall> only, uint64_t n, IoFault fault) {
    const std::scoped_lock lock(mutex_);
    const uint64_t base = only.has_value() ? calls_[static_cast<size_t>(*only)] : all_calls_;
    plan_ = {.only = only, .at = base + n, .fault = fault};
    struck_.clear();
  }

  void ClearPlan() {
    const std::scoped_lock lock(mutex_);
    plan_.reset();
    struck_.clear();
  }

  std::string struck() const {
    const std::scoped_lock lock(mutex_);
    return struck_;
  }

  uint64_t calls(IoCall call) const {
    const std::scoped_lock lock(mutex_);
    return calls_[static_cast<size_t>(call)];
  }

  uint64_t calls() const {
    const std::scoped_lock lock(mutex_);
    return all_calls_;
  }

  void CutPower() {
    const std::scoped_lock lock(mutex_);
    power_is_off_ = true;
  }

  void Created(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_[path] = 0;
    changes_.push_back({.name = path});
  }

  void OpenedAgain(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_.try_emplace(path, SizeOf(path));
  }

  void Synced(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_[path] = SizeOf(path);
  }

  void Truncated(const std::string& path, uint64_t size) {
    const std::scoped_lock lock(mutex_);
    const auto file = synced_bytes_.find(path);
    if (file != synced_bytes_.end()) {
      file->second = std::min(file->second, size);
    }
  }

  // A deletion is taken to be durable at once; files that come back are not modelled.
  void Deleted(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_.erase(path);
    std::erase_if(changes_, [&](const Change& change) { return change.name == path; });
  }

  // Called before the rename: it may have to be undone.
  void WillRename(const std::string& from, const std::string& to) {
    const std::scoped_lock lock(mutex_);
    Change change{.name = to, .renamed_from = from};
    if (std::filesystem::exists(to)) {
      change.replaced = ReadAll(to);
    }
    changes_.push_back(std::move(change));
    const auto file = synced_bytes_.find(from);
    if (file != synced_bytes_.end()) {
      synced_bytes_[to] = file->second;
      synced_bytes_.erase(from);
    } else {
      synced_bytes_.erase(to);
    }
  }

  void DirectorySynced(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto directory = std::filesystem::path(path + "/").lexically_normal().parent_path();
    std::erase_if(changes_, [&](const Change& change) {
      return std::filesystem::path(change.name).parent_path() == directory;
    });
  }

  uint64_t LoseUnsynced(const PowerLoss& loss) {
    const std::scoped_lock lock(mutex_);
    std::mt19937_64 random(loss.seed);
    uint64_t lost = 0;
    for (const auto& [path, synced] : synced_bytes_) {
      lost += CutFile(path, synced, loss.tail, &random);
    }
    if (loss.lose_directory_entries) {
      size_t kept = 0;
      if (loss.tail != PowerLoss::Tail::kGone) {
        kept = random() % (changes_.size() + 1);
      }
      while (changes_.size() > kept) {
        Undo(changes_.back());
        changes_.pop_back();
      }
    }
    synced_bytes_.clear();
    changes_.clear();
    plan_.reset();
    power_is_off_ = false;
    return lost;
  }

 private:
  struct Fault {
    std::optional<IoCall> only;
    uint64_t at = 0;
    IoFault fault = IoFault::kEio;
  };

  // A directory entry that no directory sync has covered yet.
  struct Change {
    std::string name;
    std::string renamed_from = {};                       // empty: a new file
    std::optional<std::string> replaced = std::nullopt;  // what `name` held before the rename
  };

  static uint64_t CutFile(const std::string& path,
                          uint64_t synced,
                          PowerLoss::Tail tail,
                          std::mt19937_64* random) {
    const uint64_t size = SizeOf(path);
    if (size <= synced) {
      return 0;
    }
    uint64_t kept = synced;
    if (tail != PowerLoss::Tail::kGone) {
      kept += (*random)() % (size - synced + 1);
    }
    std::filesystem::resize_file(path, kept);
    if (tail == PowerLoss::Tail::kZeroedSectors) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const std::string zeroes(kSectorBytes, '\0');
      // A sector that holds synced bytes was written whole and stays.
      for (uint64_t at = (synced + kSectorBytes - 1) / kSectorBytes * kSectorBytes; at < kept;
           at += kSectorBytes) {
        if (((*random)() & 1) != 0) {
          file.seekp(static_cast<std::streamoff>(at));
          file.write(zeroes.data(),
                     static_cast<std::streamsize>(std::min(kSectorBytes, kept - at)));
        }
      }
    }
    return size - kept;
  }

  static void Undo(const Change& change) {
    std::error_code ignored;
    if (change.renamed_from.empty()) {
      std::filesystem::remove(change.name, ignored);
      return;
    }
    std::filesystem::rename(change.name, change.renamed_from, ignored);
    if (change.replaced.has_value()) {
      std::ofstream(change.name, std::ios::binary) << *change.replaced;
    }
  }

  mutable std::mutex mutex_;
  std::array<uint64_t, kCallKinds> calls_{};
  uint64_t all_calls_ = 0;
  std::optional<Fault> plan_;
  std::string struck_;
  bool power_is_off_ = false;
  std::map<std::string, uint64_t> synced_bytes_;  // files that were written here
  std::vector<Change> changes_;                   // oldest first
};

namespace {

using Disk = FaultFileSystem::Disk;

class FaultWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultWritableFile(std::unique_ptr<rocksdb::FSWritableFile> file,
                    std::string path,
                    std::shared_ptr<Disk> disk)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        disk_(std::move(disk)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kAppend, path_);
    if (verdict.status.ok()) {
      return target()->Append(data, options, debug);
    }
    if (verdict.write_half) {
      target()->Append(Slice(data.data(), data.size() / 2), options, debug).PermitUncheckedError();
    }
    return verdict.status;
  }

  IOStatus Append(const Slice& data,
                  const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kTruncate, path_);
    if (!verdict.status.ok()) {
      return verdict.status;
    }
    disk_->Truncated(path_, size);
    return target()->Truncate(size, options, debug);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kSync, path_);
    if (!verdict.status.ok()) {
      return verdict.status;
    }
    const IOStatus flushed = target()->Flush(options, debug);
    if (flushed.ok()) {
      disk_->Synced(path_);
    }
    return flushed;
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

  // sync_file_range promises nothing.
  IOStatus RangeSync(uint64_t /*offset*/,
                     uint64_t /*size*/,
                     const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  std::string path_;
  std::shared_ptr<Disk> disk_;
};

class FaultDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultDirectory(std::unique_ptr<rocksdb::FSDirectory> directory,
                 std::string path,
                 std::shared_ptr<Disk> disk)
      : FSDirectoryWrapper(std::move(directory)), path_(std::move(path)), disk_(std::move(disk)) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kDirectorySync, path_);
    if (verdict.status.ok()) {
      disk_->DirectorySynced(path_);
    }
    return verdict.status;
  }

  IOStatus FsyncWithDirOptions(const IOOptions& options,
                               IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& /*reason*/) override {
    return Fsync(options, debug);
  }

 private:
  std::string path_;
  std::shared_ptr<Disk> disk_;
};

class FaultSequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  FaultSequentialFile(std::unique_ptr<rocksdb::FSSequentialFile> file,
                      std::string path,
                      std::shared_ptr<Disk> disk)
      : FSSequentialFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        disk_(std::move(disk)) {}

  IOStatus Read(size_t size,
                const IOOptions& options,
                Slice* result,
                char* scratch,
                IODebugContext* debug) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kRead, path_);
    return verdict.status.ok() ? target()->Read(size, options, result, scratch, debug)
                               : verdict.status;
  }

 private:
  std::string path_;
  std::shared_ptr<Disk> disk_;
};

class FaultRandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultRandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                        std::string path,
                        std::shared_ptr<Disk> disk)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        disk_(std::move(disk)) {}

  IOStatus Read(uint64_t offset,
                size_t size,
                const IOOptions& options,
                Slice* result,
                char* scratch,
                IODebugContext* debug) const override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kRead, path_);
    return verdict.status.ok() ? target()->Read(offset, size, options, result, scratch, debug)
                               : verdict.status;
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests,
                     size_t count,
                     const IOOptions& options,
                     IODebugContext* debug) override {
    // One by one, through Read above.
    return FSRandomAccessFile::MultiRead(requests, count, options, debug);
  }

 private:
  std::string path_;
  std::shared_ptr<Disk> disk_;
};

// Asks the disk, opens on the target, and wraps what came.
template <typename Wrapper, typename File, typename Open>
IOStatus OpenWrapped(IoCall call,
                     const std::string& path,
                     const std::shared_ptr<Disk>& disk,
                     std::unique_ptr<File>* result,
                     const Open& open) {
  const Disk::Verdict verdict = disk->Enter(call, path);
  if (!verdict.status.ok()) {
    return verdict.status;
  }
  std::unique_ptr<File> file;
  IOStatus status = open(&file);
  if (status.ok()) {
    *result = std::make_unique<Wrapper>(std::move(file), path, disk);
  }
  return status;
}

}  // namespace

FaultFileSystem::FaultFileSystem()
    : FileSystemWrapper(rocksdb::FileSystem::Default()), disk_(std::make_shared<Disk>()) {}

FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::FailCall(uint64_t n, IoFault fault) {
  disk_->Plan(std::nullopt, n, fault);
}

void FaultFileSystem::FailCall(IoCall only, uint64_t n, IoFault fault) {
  disk_->Plan(only, n, fault);
}

std::string FaultFileSystem::struck() const {
  return disk_->struck();
}

uint64_t FaultFileSystem::calls(IoCall call) const {
  return disk_->calls(call);
}

uint64_t FaultFileSystem::calls() const {
  return disk_->calls();
}

void FaultFileSystem::CutPower() {
  disk_->CutPower();
}

uint64_t FaultFileSystem::LoseUnsynced(const PowerLoss& loss) {
  return disk_->LoseUnsynced(loss);
}

void FaultFileSystem::ClearFaults() {
  disk_->ClearPlan();
}

IOStatus FaultFileSystem::NewSequentialFile(const std::string& path,
                                            const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                            IODebugContext* debug) {
  return OpenWrapped<FaultSequentialFile>(
      IoCall::kOpenForRead, Normal(path), disk_, result, [&](auto* file) {
        return target()->NewSequentialFile(path, options, file, debug);
      });
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path,
                                              const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                              IODebugContext* debug) {
  return OpenWrapped<FaultRandomAccessFile>(
      IoCall::kOpenForRead, Normal(path), disk_, result, [&](auto* file) {
        return target()->NewRandomAccessFile(path, options, file, debug);
      });
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path,
                                          const FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result,
                                          IODebugContext* debug) {
  return OpenWrapped<FaultWritableFile>(
      IoCall::kCreate, Normal(path), disk_, result, [&](auto* file) {
        const IOStatus status = target()->NewWritableFile(path, options, file, debug);
        if (status.ok()) {
          disk_->Created(Normal(path));
        }
        return status;
      });
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& path,
                                             const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                                             IODebugContext* debug) {
  return OpenWrapped<FaultWritableFile>(
      IoCall::kCreate, Normal(path), disk_, result, [&](auto* file) {
        disk_->OpenedAgain(Normal(path));
        return target()->ReopenWritableFile(path, options, file, debug);
      });
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path,
                                       const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* result,
                                       IODebugContext* debug) {
  return OpenWrapped<FaultDirectory>(
      IoCall::kOpenForRead, Normal(path), disk_, result, [&](auto* directory) {
        return target()->NewDirectory(path, options, directory, debug);
      });
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path,
                                     const IOOptions& options,
                                     IODebugContext* debug) {
  const Disk::Verdict verdict = disk_->Enter(IoCall::kDelete, Normal(path));
  if (!verdict.status.ok()) {
    return verdict.status;
  }
  disk_->Deleted(Normal(path));
  return target()->DeleteFile(path, options, debug);
}

IOStatus FaultFileSystem::Truncate(const std::string& path,
                                   size_t size,
                                   const IOOptions& options,
                                   IODebugContext* debug) {
  const Disk::Verdict verdict = disk_->Enter(IoCall::kTruncate, Normal(path));
  if (!verdict.status.ok()) {
    return verdict.status;
  }
  disk_->Truncated(Normal(path), size);
  return target()->Truncate(path, size, options, debug);
}

IOStatus FaultFileSystem::RenameFile(const std::string& from,
                                     const std::string& to,
                                     const IOOptions& options,
                                     IODebugContext* debug) {
  const Disk::Verdict verdict = disk_->Enter(IoCall::kRename, Normal(to));
  if (!verdict.status.ok()) {
    return verdict.status;
  }
  if (std::filesystem::exists(from)) {
    disk_->WillRename(Normal(from), Normal(to));
  }
  return target()->RenameFile(from, to, options, debug);
}

IOStatus FaultFileSystem::LinkFile(const std::string& from,
                                   const std::string& to,
                                   const IOOptions& options,
                                   IODebugContext* debug) {
  const Disk::Verdict verdict = disk_->Enter(IoCall::kCreate, Normal(to));
  return verdict.status.ok() ? target()->LinkFile(from, to, options, debug) : verdict.status;
}

}  // namespace delayd::testing

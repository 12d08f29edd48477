#include "tests/support/fault_file_system.h"

#include <filesystem>
#include <utility>

#include "tests/support/fault_disk.h"

namespace delayd::test {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

std::string Normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
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

  IOStatus PositionedAppend(const Slice& data,
                            uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* debug) override {
    const Disk::Verdict verdict = disk_->Enter(IoCall::kAppend, path_);
    if (!verdict.status.ok() && !verdict.write_half) {
      return verdict.status;
    }
    const Slice part(data.data(), verdict.write_half ? data.size() / 2 : data.size());
    disk_->WillWriteAt(path_, offset, part.size());
    IOStatus status = target()->PositionedAppend(part, offset, options, debug);
    return verdict.status.ok() ? status : verdict.status;
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

void FaultFileSystem::OnStrike(std::function<void(const std::string& what)> listener) {
  disk_->OnStrike(std::move(listener));
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
  if (path.ends_with("/LOG") && !counts_info_log_) {
    return target()->NewWritableFile(path, options, result, debug);
  }
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

}  // namespace delayd::test

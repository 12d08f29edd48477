#include "storage/rocks_status.h"

#include <cstdlib>
#include <string>

#include "storage/posix_error.h"

namespace delayd::storage {
namespace {

bool IsOverQuota(const rocksdb::Status& status) {
  return status.IsIOError() && status.ToString().find("Disk quota exceeded") != std::string::npos;
}

}  // namespace

Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) {
    return OkStatus();
  }
  std::string message = std::string(what) + ": " + status.ToString();
  // For a missing table file RocksDB reports the name that LevelDB would use, which it tried last.
  constexpr std::string_view kOldEnding = ".ldb";
  for (size_t at; (at = message.find(kOldEnding)) != std::string::npos;) {
    message.replace(at, kOldEnding.size(), ".sst");
  }
  // A file that RocksDB expects and does not find has been lost.
  if (status.IsCorruption() || status.IsPathNotFound()) {
    return DataLoss(
        message + (status.IsCorruption() ? "; restore a backup"
                                         : "; was the directory moved? else restore a backup"),
        "damaged_store");
  }
  // For what RocksDB calls a disk error, the system's own words say more.
  const auto says = [&message](std::string_view text) {
    return message.find(text) != std::string::npos;
  };
  if (IsNoRoom(status)) {
    return ResourceExhausted(message + std::string(RoomCure(status)), "disk_full");
  }
  // LOCK.delayd keeps others out, unless it was removed.
  if (says("lock file") && says("Resource temporarily unavailable")) {
    return FailedPrecondition(message + "; another process has the store open: stop it",
                              "data_dir_in_use");
  }
  if (status.IsIOError()) {
    if (says("Permission denied")) {
      return PermissionDenied(message + std::string(kOwnerCure));
    }
    if (says("Operation not permitted")) {
      return PermissionDenied(message + std::string(kOwnerCure) + std::string(kAttributeCure));
    }
    const std::string_view cure = says("Too many open files") ? kOpenFilesCure
                                  : says("File too large")    ? kFileSizeCure
                                                              : kDiskCure;
    return Unavailable(message + std::string(cure), "storage_io");
  }
  return Internal(message);
}

bool IsNoRoom(const rocksdb::Status& status) {
  return status.IsNoSpace() || IsOverQuota(status);
}

std::string_view RoomCure(const rocksdb::Status& status) {
  return IsOverQuota(status) ? kQuotaCure : kSpaceCure;
}

rocksdb::Status WithoutProbe(const rocksdb::Status& status) {
  const std::string message = status.ToString();
  const auto says = [&message](std::string_view text) {
    return message.find(text) != std::string::npos;
  };
  if (status.IsInvalidArgument() && says("Direct I/O is not supported")) {
    return rocksdb::Status::IOError("CURRENT could not be opened, and a moment later it could");
  }
  if (!status.IsInvalidArgument() || !says("options incompatible with filesystem")) {
    return status;
  }
  constexpr std::string_view kError = "IO error: ";
  const size_t error = message.rfind(kError);
  const std::string cause =
      error == std::string::npos ? message : message.substr(error + kError.size());
  return says("No space left on device") ? rocksdb::Status::NoSpace(cause)
                                         : rocksdb::Status::IOError(cause);
}

std::optional<uint64_t> MissingLog(const rocksdb::Status& status) {
  constexpr std::string_view kText = "Missing WAL with log number: ";
  const std::string message = status.ToString();
  const size_t at = message.find(kText);
  if (!status.IsCorruption() || at == std::string::npos) {
    return std::nullopt;
  }
  return std::strtoull(message.c_str() + at + kText.size(), nullptr, 10);
}

}  // namespace delayd::storage

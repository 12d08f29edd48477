// daemon/disk_reserve.h — watches the room left on the disk. Below the reserve new jobs are
// refused, so that acks and cancels can still be written.
//
// What:    Look compares the free space with the reserve and keeps the verdict. A refusal is lifted
//          only at a sixteenth above the reserve, so that it does not flap. A disk on which hardly
//          any file can be created counts as full too, because each flush creates some. So does a
//          disk that the kernel made read-only: the first commit would end the daemon.
// Units:   bytes.
// Errors:  if the free space cannot be queried, the verdict about it stays as it was and one line
//          is logged.
// Threads: one.
// Cost:    three statvfs(2) and one open(2) per look.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace delayd {

struct DiskReserveOptions {
  std::string directory;
  uint64_t reserve = 0;  // 0: never refuse for lack of room
  Millis interval{1000};
  // Bytes that the daemon may still write where `directory` is. Tests supply their own.
  std::function<StatusOr<uint64_t>(const std::string& directory)> free_bytes;
  // Files that may still be created there; empty: files are not counted.
  std::function<StatusOr<uint64_t>(const std::string& directory)> free_files;
  // Whether the file system has been made read-only; empty: not checked.
  std::function<bool(const std::string& directory)> is_read_only;
};

StatusOr<uint64_t> FreeBytes(const std::string& directory);
// The largest possible number where the file system has no fixed number of files.
StatusOr<uint64_t> FreeFiles(const std::string& directory);
// Whether the file system of this store takes no writes: it is read-only, was shut down, or its
// server is gone.
bool IsReadOnly(const std::string& directory);

class DiskReserve {
 public:
  explicit DiskReserve(DiskReserveOptions options) : options_(std::move(options)) {}

  const DiskReserveOptions& options() const { return options_; }

  bool watched() const { return options_.reserve != 0 || options_.is_read_only; }

  // True if refusal() has changed: between OK and an error, or in what is short.
  bool Look();

  // OK, or kResourceExhausted "disk_full" or "disk_read_only" with what to do.
  const Status& refusal() const { return refusal_; }

 private:
  enum class Lack : uint8_t { kNothing, kFiles, kBytes, kWriting };

  Lack Judge();
  Lack JudgeRoom(uint64_t free) const;
  Status Refusal() const;

  DiskReserveOptions options_;
  Lack lack_ = Lack::kNothing;
  Status refusal_;
  bool unreadable_ = false;
};

}  // namespace delayd

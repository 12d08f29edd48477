// daemon/disk_reserve.h — is there still room on the disk? Below the reserve new jobs are refused,
// so that acks and cancels can still be written.
//
// What:    Look compares the free space with the reserve and keeps the verdict. It is lifted a
//          sixteenth above the reserve, so that it does not flap. A disk on which hardly a file
//          can be made is full too: each flush makes some. One that the kernel made read-only takes
//          none either: the first commit would end the daemon.
// Units:   bytes.
// Errors:  a disk that cannot be asked leaves the verdict as it was, and is told to the log once.
// Threads: one.
// Cost:    three statvfs(2) a look.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace delayd {

struct DiskReserveOptions {
  std::string directory;
  uint64_t reserve = 0;  // 0: never refuse
  Millis interval{1000};
  // Bytes that the daemon may still write where `directory` is. Tests put their own disk here.
  std::function<StatusOr<uint64_t>(const std::string& directory)> free_bytes;
  // Files that may still be made there; none: nobody counts them.
  std::function<StatusOr<uint64_t>(const std::string& directory)> free_files;
  // Has the file system been made read-only? None: it is not asked.
  std::function<bool(const std::string& directory)> is_read_only;
};

StatusOr<uint64_t> FreeBytes(const std::string& directory);
// As many as there can be where the file system has no fixed number of them.
StatusOr<uint64_t> FreeFiles(const std::string& directory);
bool IsReadOnly(const std::string& directory);

class DiskReserve {
 public:
  explicit DiskReserve(DiskReserveOptions options) : options_(std::move(options)) {}

  const DiskReserveOptions& options() const { return options_; }

  bool watched() const { return options_.reserve != 0; }

  // True when refusal() has changed: between OK and not, or what is short.
  bool Look();

  // OK, or kResourceExhausted "disk_full" or "disk_read_only" with what to do.
  const Status& refusal() const { return refusal_; }

 private:
  enum class Lack : uint8_t { kNothing, kFiles, kBytes, kWriting };

  Lack Judge(uint64_t free) const;
  Status Refusal() const;

  DiskReserveOptions options_;
  Lack lack_ = Lack::kNothing;
  Status refusal_;
  bool unreadable_ = false;
};

}  // namespace delayd

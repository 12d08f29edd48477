#include "daemon/disk_reserve.h"

#include <cerrno>

#include "base/errno_text.h"
#include "base/size_text.h"
#include "daemon/config_values.h"
#include "daemon/log.h"

#include <sys/statvfs.h>

namespace delayd {

StatusOr<uint64_t> FreeBytes(const std::string& directory) {
  struct statvfs info {};

  if (::statvfs(directory.c_str(), &info) != 0) {
    return Unavailable("cannot ask for the free space of " + directory + ": " + ErrnoText(errno));
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

bool DiskReserve::Look() {
  const StatusOr<uint64_t> free = options_.free_bytes(options_.directory);
  if (!free.ok()) {
    if (!unreadable_) {
      log::Warn("the disk's free space is not known; storage.reserve does not guard",
                {{"detail", free.status().message()}});
    }
    unreadable_ = true;
    return false;
  }
  unreadable_ = false;
  const bool was_low = !refusal_.ok();
  const uint64_t enough = options_.reserve + (was_low ? options_.reserve / 16 : 0);
  if ((*free < enough) == was_low) {
    return false;
  }
  refusal_ = was_low
                 ? OkStatus()
                 : ResourceExhausted(
                       "the disk of " + options_.directory + " has less free space than " +
                           "storage.reserve, " + FormatSize(options_.reserve) +
                           ", so no new job is taken; free some space, or lower storage.reserve. "
                           "Jobs that are there are handed out, acked and cancelled as ever",
                       "disk_full");
  return true;
}

}  // namespace delayd

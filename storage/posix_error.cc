#include "storage/posix_error.h"

#include <cerrno>

#include "base/errno_text.h"

namespace delayd::storage {

namespace {

// Of FUSE and NFS.
constexpr std::string_view kServerCure =
    "; the server of the file system is gone: look at it, and mount it anew";

}  // namespace

Status PosixError(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message(what);
  message += " " + path + ": " + ErrnoText(error);
  switch (error) {
    case EACCES:
      return PermissionDenied(message + std::string(kOwnerCure) + ServiceCure(error, path));
    case EPERM:
      return PermissionDenied(message + std::string(kOwnerCure) + std::string(kAttributeCure) +
                              ServiceCure(error, path));
    case EROFS:
      return PermissionDenied(message + "; mount it writable, or copy the directory elsewhere" +
                              ServiceCure(error, path));
    case ENOSPC:
      return ResourceExhausted(message + std::string(kSpaceCure), "disk_full");
    case EDQUOT:
      return ResourceExhausted(message + std::string(kQuotaCure), "disk_full");
    case ENOENT:
      return NotFound(message);
    case EIO:
      return Unavailable(message + std::string(kDiskCure), "storage_io");
    case ENOTCONN:
    case ESTALE:
      return Unavailable(message + std::string(kServerCure), "storage_io");
    case EFBIG:
      return Unavailable(message + std::string(kFileSizeCure), "storage_io");
    case EMFILE:
    case ENFILE:
      return Unavailable(message + std::string(kOpenFilesCure), "storage_io");
    default:
      return Unavailable(message, "storage_io");
  }
}

}  // namespace delayd::storage

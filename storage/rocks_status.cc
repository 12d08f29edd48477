#include "storage/rocks_status.h"

#include <string>

namespace delayd::storage {

Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) {
    return OkStatus();
  }
  const std::string message = std::string(what) + ": " + status.ToString();
  if (status.IsCorruption()) {
    return DataLoss(message, "damaged_store");
  }
  if (status.IsNoSpace()) {
    return ResourceExhausted(message + "; free some space", "disk_full");
  }
  if (status.IsIOError()) {
    if (status.ToString().find("Permission denied") != std::string::npos) {
      return PermissionDenied(message);
    }
    return Unavailable(message, "storage_io");
  }
  return Internal(message);
}

}  // namespace delayd::storage

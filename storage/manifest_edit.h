// storage/manifest_edit.h — what a record of RocksDB's MANIFEST says of the logs and the table
// files. Private to the room.
//
// Errors:  none: reading a record stops at what makes no sense.
// Threads: any.
// Source:  RocksDB's VersionEdit and WalAddition.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace delayd::storage {

struct ManifestEdit {
  // A log that RocksDB has finished with (it went on in another), and how much of it was durable
  // then.
  struct Log {
    uint64_t number = 0;
    uint64_t bytes = 0;
  };

  std::optional<uint64_t> min_log_number_to_keep;
  std::optional<uint64_t> last_sequence;
  std::vector<Log> logs;
  std::vector<uint64_t> tables;  // the numbers of the table files that it adds
};

ManifestEdit ReadManifestEdit(std::string_view bytes);

}  // namespace delayd::storage

// storage/numbered_files.h — finds RocksDB's files by the numbers in their names. Private to the
// room.
//
// Errors:  a directory that cannot be listed.
// Threads: any, also while a store is open.
// Cost:    a listing of the directory; LogBytes adds one system call per log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace delayd::storage {

// "000012.log" is 12 for the ending ".log"; nothing for a name of another form.
std::optional<uint64_t> NumberOf(std::string_view name, std::string_view ending);

// The files with that ending in the directory, ordered by number.
StatusOr<std::vector<std::string>> NumberedFiles(const std::string& directory,
                                                 std::string_view ending);

// "000012.log".
std::string LogName(uint64_t number);
// The write-ahead logs, oldest first.
StatusOr<std::vector<std::string>> LogNames(const std::string& directory);
// The total size of the write-ahead logs.
StatusOr<uint64_t> LogBytes(const std::string& directory);

}  // namespace delayd::storage

// storage/numbered_files.h — RocksDB's files by the numbers in their names. Private to the room.
//
// Errors:  a directory that cannot be listed.
// Threads: any, also while a store is open.
// Cost:    a listing of the directory; of LogBytes a system call for each log besides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace delayd::storage {

// "000012.log" is 12 for the ending ".log"; nothing for what is not so called.
std::optional<uint64_t> NumberOf(std::string_view name, std::string_view ending);

// Those of the directory, by their numbers.
StatusOr<std::vector<std::string>> NumberedFiles(const std::string& directory,
                                                 std::string_view ending);

// "000012.log".
std::string LogName(uint64_t number);
// The write-ahead logs, oldest first.
StatusOr<std::vector<std::string>> LogNames(const std::string& directory);
// What they hold together.
StatusOr<uint64_t> LogBytes(const std::string& directory);

}  // namespace delayd::storage

// storage/files.h — small files and directories: listing, reading, and writing such that a crash
// leaves either the old content or the new. Private to the room.
//
// Errors:  those of the system, with the path and what to do (storage/posix_error.h).
// Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace delayd::storage {

std::string WithoutTrailingSlashes(std::string path);
// Of a path without trailing slashes.
std::string ParentOf(const std::string& path);

// The names of the entries, in no particular order.
StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

inline constexpr size_t kSmallFileBytesMax = 4096;

// Reads to the end, or one byte beyond `bytes_max`. Nothing if there is no such file.
StatusOr<std::optional<std::string>> ReadFileIfThere(const std::string& path,
                                                     size_t bytes_max = kSmallFileBytesMax);

// `path` is for error messages.
Status WriteAll(int fd, std::string_view content, const std::string& path);
// Replaces the content of `path`: after a crash it holds either the old or the new, whole.
Status WriteFileDurably(const std::string& path, const std::string& content);
// fsync of a file or a directory.
Status SyncFile(const std::string& path);

}  // namespace delayd::storage

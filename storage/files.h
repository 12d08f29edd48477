// storage/files.h — small files and directories: listed, read, and written so that a crash leaves
// the old or the new. Private to the room.
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

// The names of what is in it, in no particular order.
StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

inline constexpr size_t kSmallFileBytesMax = 4096;

// To its end, or one byte beyond `bytes_max`. Nothing when there is no such file.
StatusOr<std::optional<std::string>> ReadFileIfThere(const std::string& path,
                                                     size_t bytes_max = kSmallFileBytesMax);

// `path` is what errors name.
Status WriteAll(int fd, std::string_view content, const std::string& path);
// Replaces `path` by `content`: after a crash it holds the old or the new, whole.
Status WriteFileDurably(const std::string& path, const std::string& content);
// fsync of a file or a directory.
Status SyncFile(const std::string& path);

}  // namespace delayd::storage

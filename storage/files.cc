#include "storage/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/crash_point.h"
#include "base/read_up_to.h"
#include "base/unique_fd.h"
#include "storage/posix_error.h"

namespace delayd::storage {

namespace fs = std::filesystem;

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    errno = error.value();
    return PosixError("cannot read directory", path);
  }
  return names;
}

StatusOr<std::optional<std::string>> ReadFileIfThere(const std::string& path, size_t bytes_max) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) {
      return std::optional<std::string>();
    }
    return PosixError("cannot open", path);
  }
  std::optional<std::string> content = ReadUpTo(file.get(), bytes_max);
  if (!content.has_value()) {
    return PosixError("cannot read", path);
  }
  return content;
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return PosixError("cannot write", path);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status WriteFileDurably(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  {
    const UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) {
      return PosixError("cannot make", temporary);
    }
    DELAYD_RETURN_IF_ERROR(WriteAll(file.get(), content, temporary));
    if (::fsync(file.get()) != 0) {
      return PosixError("cannot fsync", temporary);
    }
  }
  DELAYD_CRASH_POINT("file/before_rename");
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return PosixError("cannot rename " + temporary + " to", path);
  }
  DELAYD_CRASH_POINT("file/renamed");
  return SyncFile(ParentOf(path));
}

Status SyncFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return PosixError("cannot open", path);
  }
  if (::fsync(file.get()) != 0) {
    return PosixError("cannot fsync", path);
  }
  return OkStatus();
}

}  // namespace delayd::storage

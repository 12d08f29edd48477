#include "daemon/config_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/errno_text.h"
#include "base/read_up_to.h"
#include "base/unique_fd.h"

#include <sys/stat.h>

namespace delayd {

namespace {

constexpr size_t kBytesMax = size_t{1} << 20;

Status CannotRead(const std::string& path, const std::string& cause) {
  return InvalidArgument(path + ": cannot read the configuration: " + cause +
                         "; check the path and its permissions");
}

Status CannotRead(const std::string& path, int error) {
  const Status status = CannotRead(path, ErrnoText(error));
  return error == ENOENT ? NotFound(status.message()) : status;
}

}  // namespace

bool IsPipe(const std::string& path) {
  struct stat info {};

  return ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

StatusOr<ConfigText> ReadConfigText(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));

  struct stat info {};

  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    return CannotRead(path, errno);
  }
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return CannotRead(path, "it is not a file");
  }
  const bool is_stream = ::lseek(file.get(), 0, SEEK_CUR) < 0;  // /dev/null is not a stream
  std::optional<std::string> text = ReadUpTo(file.get(), kBytesMax);
  if (!text) {
    return CannotRead(path, errno);
  }
  if (text->size() > kBytesMax) {
    return CannotRead(path, "it is larger than 1 MiB");
  }
  return ConfigText{.text = *std::move(text), .is_stream = is_stream};
}

}  // namespace delayd

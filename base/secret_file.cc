#include "base/secret_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/errno_text.h"
#include "base/read_up_to.h"
#include "base/unique_fd.h"

#include <sys/stat.h>

namespace delayd {
namespace {

constexpr size_t kSecretBytesMax = size_t{64} << 10;

Status CannotReadSecret(const SecretFile& file, const std::string& why) {
  return InvalidArgument("cannot read " + file.what + " " + file.path + ": " + why);
}

Status CheckSecretKind(const SecretFile& file, mode_t mode) {
  const bool is_users = file.of == SecretOf::kUser;
  if (S_ISREG(mode) || (is_users && S_ISFIFO(mode))) {
    return OkStatus();
  }
  return CannotReadSecret(file,
                          (is_users ? "it is no file; " : "it is no regular file; ") + file.cure);
}

Status CheckSecretMode(const SecretFile& file, const struct stat& info) {
  if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return PermissionDenied(file.what + " " + file.path +
                            " can be read or written by everybody; run 'chmod o-rw " + file.path +
                            "' and " + file.renew);
  }
  if (file.of == SecretOf::kDaemon && (info.st_mode & (S_IRGRP | S_IWGRP)) != 0 &&
      info.st_gid == ::getegid() && ::geteuid() != 0) {
    return PermissionDenied(file.what + " " + file.path +
                            " can be read or written by the daemon's group, which is that of its "
                            "socket's users; run 'chown delayd " +
                            file.path + " && chmod 400 " + file.path + "' and " + file.renew);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> ReadSecretFile(const SecretFile& file) {
  const int no_wait = file.of == SecretOf::kDaemon ? O_NONBLOCK : 0;
  const UniqueFd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | no_wait));

  struct stat info {};

  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return CannotReadSecret(file, ErrnoText(errno) + "; check the name and rights of the file");
  }
  // This check comes first: advice to change the mode of /dev/null would be followed.
  DELAYD_RETURN_IF_ERROR(CheckSecretKind(file, info.st_mode));
  DELAYD_RETURN_IF_ERROR(CheckSecretMode(file, info));
  std::optional<std::string> text = ReadUpTo(fd.get(), kSecretBytesMax);
  if (!text.has_value()) {
    return CannotReadSecret(file, ErrnoText(errno) + "; look at the file and its disk");
  }
  if (text->size() > kSecretBytesMax) {
    return CannotReadSecret(file, "it is larger than 64 KiB; " + file.cure);
  }
  return *std::move(text);
}

}  // namespace delayd

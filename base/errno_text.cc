#include "base/errno_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace delayd {

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

std::string ServiceCure(int error, std::string_view path) {
  // The directories that systemd's ProtectHome= hides.
  constexpr auto kHomes = std::to_array<std::string_view>({"/home", "/root", "/run/user"});
  const auto lies_below = [path](std::string_view home) {
    return path.starts_with(home) && path.substr(home.size()).starts_with('/');
  };
  if (error == EACCES && std::ranges::any_of(kHomes, lies_below)) {
    return "; a service sees nothing there without ProtectHome=no (systemctl edit delayd)";
  }
  return error == EROFS ? "; a service must be let in with ReadWritePaths= (systemctl edit delayd)"
                        : "";
}

}  // namespace delayd

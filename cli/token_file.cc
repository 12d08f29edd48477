#include "cli/token_file.h"

#include <algorithm>
#include <fstream>

#include <sys/stat.h>

namespace delayd::cli {

StatusOr<std::string> ReadTokenFile(const std::string& path) {
  struct stat info {};

  std::ifstream file(path);
  if (!file || ::stat(path.c_str(), &info) != 0) {
    return InvalidArgument("cannot read the token file " + path +
                           "; give the path of a file with the token with --token-file");
  }
  // Advice to change the mode of /dev/null would be followed; a pipe is as good as a file.
  const bool is_open = (info.st_mode & S_IROTH) != 0;
  if (S_ISDIR(info.st_mode) || (is_open && S_ISCHR(info.st_mode))) {
    return InvalidArgument("the token file " + path +
                           " is no file; leave --token-file and DELAYCTL_TOKEN_FILE out where no "
                           "token is needed");
  }
  if (is_open) {
    return PermissionDenied("the token file " + path +
                            " can be read by everybody; run 'chmod o-r " + path +
                            "' and have a new token made");
  }
  std::string token;
  std::string more;
  file >> token >> more;
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (token.empty() || !more.empty() || !printable) {
    return InvalidArgument("the token file " + path + " must hold one token and nothing else");
  }
  return token;
}

}  // namespace delayd::cli

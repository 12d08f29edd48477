// cli/token_file.h — the token that delayctl shows, out of its file.
//
// Errors:  kInvalidArgument for a file that cannot be read or holds no single token,
//          kPermissionDenied for one that everybody can read or write. The token is never in a
//          message.
// Threads: any.
#pragma once

#include <string>

#include "base/status.h"

namespace delayd::cli {

StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace delayd::cli

// cli/token_file.h — reads the token that delayctl sends from its file.
//
// Errors:  kInvalidArgument for a file that cannot be read or does not hold exactly one token,
//          kPermissionDenied for one that everybody can read or write. No message contains the
//          token.
// Threads: any.
#pragma once

#include <string>

#include "base/status.h"

namespace delayd::cli {

StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace delayd::cli

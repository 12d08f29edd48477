// storage/posix_error.h — errno as a Status that says what was tried on which path.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::storage {

// Reads errno: call it before anything else can change it.
Status PosixError(std::string_view what, const std::string& path);

}  // namespace delayd::storage

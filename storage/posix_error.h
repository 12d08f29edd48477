// storage/posix_error.h — turns errno into a Status that says what was tried on which path.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::storage {

// What to do about some system errors; appended to the message.
inline constexpr std::string_view kDiskCure =
    "; look at the kernel's log (dmesg) and the disk's health";
inline constexpr std::string_view kOwnerCure =
    "; run as the owner of the directory; all that is in it must be his, and writable for him "
    "(chown -R, chmod -R u+rwX)";
// Root meets this too.
inline constexpr std::string_view kAttributeCure =
    "; or its attributes forbid it (lsattr shows them, chattr -i -a takes them away)";
inline constexpr std::string_view kOpenFilesCure = "; raise the limit of open files";
inline constexpr std::string_view kFileSizeCure =
    "; raise the limit on the size of files (ulimit -f, LimitFSIZE=)";
inline constexpr std::string_view kSpaceCure = "; free some space, or inodes (df -i)";
inline constexpr std::string_view kQuotaCure = "; raise the quota, or free some space";

// Reads errno: call it before anything else can change it.
Status PosixError(std::string_view what, const std::string& path);

}  // namespace delayd::storage

// base/errno_text.h — the system's text for an error number, such as "No such file or directory".
//
// Threads: any (unlike strerror).
#pragma once

#include <string>
#include <string_view>

namespace delayd {

// `error` is a value of errno: save it before another call can change it.
std::string ErrnoText(int error);

// "; a service ...": further advice about a path that the sandbox of the systemd unit may hide
// (ProtectSystem=, ProtectHome=). Empty if the sandbox cannot be the cause.
std::string ServiceCure(int error, std::string_view path);

}  // namespace delayd

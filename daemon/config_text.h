// daemon/config_text.h — the text of the configuration file, before anybody understands it.
//
// Errors:  whatever keeps the whole of it from being read: half a file would be half the settings.
// Threads: any.
// Cost:    a file of 1 MiB at most; a pipe is read until its writer ends it.
#pragma once

#include <string>

#include "base/status.h"

namespace delayd {

struct ConfigText {
  std::string text;
  bool is_stream = false;  // a pipe or a terminal: it cannot be read a second time
};

// To open one waits for whoever writes into it.
bool IsPipe(const std::string& path);

// kNotFound when there is no such file.
StatusOr<ConfigText> ReadConfigText(const std::string& path);

}  // namespace delayd

// daemon/config_text.h — the text of the configuration file, before it is parsed.
//
// Errors:  anything that prevents reading all of it: half a file would be half the settings.
// Threads: any.
// Cost:    a file of at most 1 MiB; a pipe is read until its writer closes it.
#pragma once

#include <string>

#include "base/status.h"

namespace delayd {

struct ConfigText {
  std::string text;
  bool is_stream = false;  // a pipe or a terminal: it cannot be read a second time
};

// Opening a pipe blocks until it has a writer.
bool IsPipe(const std::string& path);

// kNotFound when there is no such file.
StatusOr<ConfigText> ReadConfigText(const std::string& path);

}  // namespace delayd

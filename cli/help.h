// cli/help.h — the help that is not about one verb.
//
// Threads: pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace delayd::cli {

// What bare `delayctl` prints: two examples, then the verbs.
std::string ShortHelp(const std::vector<std::unique_ptr<Verb>>& verbs);
// The same with the global options and the exit codes.
std::string LongHelp(const std::vector<std::unique_ptr<Verb>>& verbs);
std::string VersionLine();

}  // namespace delayd::cli

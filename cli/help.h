// cli/help.h — the help texts for all verbs and for one.
//
// Threads: pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/verb.h"

namespace delayd::cli {

// What bare `delayctl` prints: two examples, then the verbs.
std::string ShortHelp(const std::vector<std::unique_ptr<Verb>>& verbs);
// The same with the global options and the exit codes.
std::string LongHelp(const std::vector<std::unique_ptr<Verb>>& verbs);
// What `delayctl VERB --help` prints. `own` are the options that the verb has declared.
std::string VerbHelp(const Verb& verb, const Options& own, const Options& global);
std::string VersionLine();

}  // namespace delayd::cli

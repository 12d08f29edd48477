// cli/command_line.h — the words behind delayctl, taken apart.
//
// What:    finds the verb, declares its options beside the global ones, and fills both in. Global
// options stand before or behind the verb.
// Errors:  kInvalidArgument "usage" with what was meant, where that can be guessed. What CLI11
// throws ends here.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/context.h"
#include "cli/local_time.h"
#include "cli/verb.h"

namespace delayd::cli {

struct Invocation {
  Globals globals;
  Verb* verb = nullptr;  // null: there is only `help` to print
  std::string help;
};

struct Words {
  std::string verb;    // empty: none, or one that is empty
  bool named = false;  // whether there is one
  std::vector<std::string> others;
  size_t before = 0;  // of them, those that stand before the verb
};

// The verb is the first word that is neither an option nor an option's value.
Words SplitVerb(const std::vector<std::string>& args);

// Whether -o asks for JSON, wherever it stands and whatever is wrong with the rest.
bool AsksForJson(const std::vector<std::string>& args);

// `args` without the program's own name; times without a zone are read by `clock`.
StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& args,
                                      const std::vector<std::unique_ptr<Verb>>& verbs,
                                      const LocalClock& clock);

}  // namespace delayd::cli

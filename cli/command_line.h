// cli/command_line.h — parses the arguments of delayctl.
//
// What:    finds the verb, declares its options beside the global ones, and fills both in. Global
// options stand before or after the verb.
// Errors:  kInvalidArgument "usage", with what was probably meant where that can be guessed.
// CLI11's exceptions end here.
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
  Verb* verb = nullptr;  // null: only print `help`
  std::string help;
};

struct Words {
  std::string verb;    // empty: no verb, or an empty word
  bool named = false;  // whether a verb was given, even an empty one
  std::vector<std::string> others;
  size_t before = 0;  // how many of them precede the verb
};

// The verb is the first word that is neither an option nor an option's value.
Words SplitVerb(const std::vector<std::string>& args);

// Whether -o asks for JSON, wherever it stands and even if the rest of the line is wrong.
bool AsksForJson(const std::vector<std::string>& args);

// `args` excludes the program's name; times without a zone are in the zone of `clock`.
StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& args,
                                      const std::vector<std::unique_ptr<Verb>>& verbs,
                                      const LocalClock& clock);

}  // namespace delayd::cli

// cli/manual.h — the parts of delayctl(1) that come from the code: verbs, options, exit codes.
//
// What:    text for scdoc, so that the page and the program cannot drift apart; docs/man inserts it
//          into the page with `delayctl __manual PART`.
// Threads: pure functions.
// Source:  scdoc(5).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"

namespace delayd::cli {

// `part` is verbs, options or exit-codes; none for another.
std::optional<std::string> ManualPart(std::string_view part,
                                      const std::vector<std::unique_ptr<Verb>>& verbs);

}  // namespace delayd::cli

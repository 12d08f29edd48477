// cli/global_options.h — the options that every verb takes.
//
// Errors:  kInvalidArgument "usage".
// Threads: one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/context.h"
#include "cli/options.h"

namespace delayd::cli {

// The raw values, until ApplyGlobals has interpreted them.
struct GlobalValues {
  Globals globals;
  std::optional<std::string> output;
};

// None when -o names another format, or one that does not exist.
std::optional<OutputFormat> ParseJsonFormat(std::string_view output);

void DeclareGlobals(Options* options, GlobalValues* values);
StatusOr<Globals> ApplyGlobals(const GlobalValues& values);

}  // namespace delayd::cli

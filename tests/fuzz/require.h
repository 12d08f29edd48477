// tests/fuzz/require.h — what a fuzz target claims: false ends the process, as a sanitizer would.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace delayd::fuzz {

// The place is the caller's; clang 14 has no std::source_location.
inline void Require(bool claim,
                    std::string_view what = "a claim does not hold",
                    const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (!claim) {
    std::fprintf(stderr, "%s:%d: %.*s\n", file, line, static_cast<int>(what.size()), what.data());
    std::abort();
  }
}

}  // namespace delayd::fuzz

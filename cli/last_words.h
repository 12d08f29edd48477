// cli/last_words.h — the line that delayctl prints before it ends with kExitFailed where no Status
// can be returned (base/last_words.h).
//
// Errors:  none.
// Threads: InstallLastWords once, before other threads exist.
#pragma once

namespace delayd::cli {

void InstallLastWords();

}  // namespace delayd::cli

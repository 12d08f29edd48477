// base/ending_text.h — how a job ended, in the message that refuses to change it.
//
// What:    a Status carries a code, a reason and a text. What a program must be able to tell apart
//          is read from the text's end again, by the same file that wrote it; a job's key stands
//          before it.
// Errors:  none.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace delayd {

// " was acked at 2026-11-21T08:47:58.731Z and is finished; nothing was changed", behind the name of
// the job.
std::string FormatEnding(bool cancelled, WallTime at);

struct EndingWords {
  std::string_view outcome;   // as a finished job shows it: acked, cancelled
  std::string_view finished;  // a part of the message
};

// None: the message tells of no end.
std::optional<EndingWords> EndingToldIn(std::string_view message);

}  // namespace delayd

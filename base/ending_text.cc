#include "base/ending_text.h"

namespace delayd {
namespace {

constexpr std::string_view kAcked = " was acked at ";
constexpr std::string_view kCancelled = " was cancelled already at ";
constexpr std::string_view kCancelledOfOld = " was cancelled at ";  // by an older daemon
constexpr std::string_view kEnd = " and is finished; nothing was changed";

}  // namespace

std::string FormatEnding(bool cancelled, WallTime at) {
  return std::string(cancelled ? kCancelled : kAcked) + FormatUtc(at) + std::string(kEnd);
}

std::optional<EndingWords> EndingToldIn(std::string_view message) {
  if (!message.ends_with(kEnd)) {
    return std::nullopt;
  }
  message.remove_suffix(kEnd.size());
  const std::string_view finished = message.substr(message.rfind(' ') + 1);
  message.remove_suffix(finished.size());
  if (message.ends_with(kAcked)) {
    return EndingWords{.outcome = "acked", .finished = finished};
  }
  if (message.ends_with(kCancelled) || message.ends_with(kCancelledOfOld)) {
    return EndingWords{.outcome = "cancelled", .finished = finished};
  }
  return std::nullopt;
}

}  // namespace delayd

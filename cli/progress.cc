#include "cli/progress.h"

#include <algorithm>

#include "cli/human_time.h"

namespace delayd::cli {
namespace {

constexpr Millis kRedrawEvery{100};
constexpr Millis kLineEvery{10'000};
constexpr size_t kBarWidth = 30;

}  // namespace

std::string Rate(uint64_t count, Millis elapsed) {
  const auto millis = static_cast<uint64_t>(std::max<int64_t>(1, elapsed.count()));
  return std::to_string(count * 1000 / millis) + "/s";
}

Progress::Progress(Console* console, const Clock* clock, std::string what, uint64_t total)
    : console_(console),
      clock_(clock),
      what_(std::move(what)),
      total_(total),
      start_(clock->Sample().boot),
      last_(start_) {}

std::string Progress::Bar(uint64_t done) const {
  if (total_ == 0) {
    return "";
  }
  const uint64_t shown = std::min(done, total_);
  const auto filled = static_cast<size_t>(shown * kBarWidth / total_);
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '-') + "] " +
         std::to_string(shown * 100 / total_) + "% ";
}

void Progress::Update(uint64_t count, uint64_t done) {
  const bool terminal = console_->traits().err_is_terminal && !console_->traits().dumb;
  const BootTime now = clock_->Sample().boot;
  if (now - last_ < (terminal ? kRedrawEvery : kLineEvery)) {
    return;
  }
  last_ = now;
  const std::string text = std::to_string(count) + " " + what_ + " " + Rate(count, now - start_);
  if (!terminal) {
    console_->Say(text + " after " + RoughDuration(now - start_));
    return;
  }
  std::string line = Bar(done) + text;
  // A line that wraps could not be erased.
  line.resize(std::min(line.size(), console_->traits().width - 1));
  console_->Draw("\r\x1b[K" + line);
  drawn_ = true;
}

void Progress::Clear() {
  if (drawn_) {
    console_->Draw("\r\x1b[K");
    drawn_ = false;
  }
}

}  // namespace delayd::cli

#include "tests/bench/load/job_maker.h"

#include <random>

namespace delayd::load {

JobMaker::JobMaker(const Options& options) : size_(options.size), queues_(options.queues) {
  constexpr size_t kTextBytes = size_t{1} << 20;
  std::mt19937_64 random(1);
  text_.reserve(kTextBytes + size_);
  while (text_.size() < kTextBytes + size_) {
    text_ += "abcdefghijklmnopqrstuvwxyz234567"[random() % 32];
  }
}

std::string_view JobMaker::Body() {
  constexpr uint64_t kStride = 7919;  // no two payloads of a run begin alike for long
  return std::string_view(text_).substr(made_ * kStride % (size_t{1} << 20), size_);
}

const std::vector<NewJob>& JobMaker::Make(size_t count, int64_t delay_ms, bool spread) {
  constexpr uint64_t kSeconds = 600;
  jobs_.clear();
  for (size_t i = 0; i < count; ++i) {
    const int64_t more = spread ? static_cast<int64_t>(made_ % kSeconds) * 1000 : 0;
    jobs_.push_back({.delay_ms = delay_ms + more,
                     .body = Body(),
                     .queue = queues_ == 0 ? -1 : static_cast<int64_t>(made_ % queues_)});
    ++made_;
  }
  return jobs_;
}

const std::vector<NewJob>& JobMaker::Far(size_t count) {
  return Make(count, kFarMs, true);
}

const std::vector<NewJob>& JobMaker::DueAfter(int64_t delay_ms, size_t count) {
  return Make(count, delay_ms, false);
}

}  // namespace delayd::load

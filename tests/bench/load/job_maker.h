// tests/bench/load/job_maker.h — payloads that do not compress, and the jobs that carry them.
//
// Cost:    no randomness is made while jobs are; a payload is a place in a text made beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/load/dialect.h"
#include "tests/bench/load/options.h"

namespace delayd::load {

// Far enough for every run.
inline constexpr int64_t kFarMs = 1'800'000;

class JobMaker {
 public:
  explicit JobMaker(const Options& options);

  // The next `count` jobs, each due after 30 to 40 minutes, or all after `delay_ms`.
  const std::vector<NewJob>& Far(size_t count);
  const std::vector<NewJob>& DueAfter(int64_t delay_ms, size_t count);

 private:
  std::string_view Body();
  const std::vector<NewJob>& Make(size_t count, int64_t delay_ms, bool spread);

  const size_t size_;
  const size_t queues_;
  std::string text_;
  uint64_t made_ = 0;
  std::vector<NewJob> jobs_;
};

}  // namespace delayd::load

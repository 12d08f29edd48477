#include "tests/bench/load/fill.h"

#include <algorithm>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/server_process.h"

namespace delayd::load {

std::vector<uint64_t> Fill(const Options& options, size_t jobs, const MakeJobs& make) {
  constexpr size_t kClients = 4;
  constexpr size_t kWindow = 250;
  if (jobs == 0) {
    return {};
  }
  Crowd crowd(options, kClients);
  std::vector<uint64_t> ids;
  ids.reserve(jobs);
  size_t sent = 0;
  const auto put = [&](size_t i) {
    const size_t each = crowd[i].dialect().JobsEach(Verb::kPut, kWindow);
    const size_t count = std::min(each, jobs - sent);
    if (count > 0) {
      sent += count;
      crowd[i].Put(make(count), 0);
    }
  };
  for (size_t i = 0; i < crowd.size(); ++i) {
    for (size_t n = 0; n < kWindow; n += crowd[i].dialect().JobsEach(Verb::kPut, kWindow)) {
      put(i);
    }
  }
  while (ids.size() < jobs) {
    crowd.Turn(1'000'000, [&](size_t i, const Answer& answer) {
      ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
      put(i);
    });
  }
  return ids;
}

void FillPending(const Options& options, JobMaker* maker) {
  Fill(
      options, options.pending, [maker](size_t count) -> const auto& { return maker->Far(count); });
  if (options.pending > 0 && options.pid != 0) {
    WaitForRest(options.pid);  // their cost is not that of what is measured
  }
}

}  // namespace delayd::load

#include <algorithm>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/latencies.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/server_process.h"

namespace delayd::load {

void MeasureCancel(const Options& options) {
  JobMaker maker(options);
  FillPending(options, &maker);
  std::vector<uint64_t> ids = Fill(
      options, options.jobs, [&](size_t count) -> const auto& { return maker.Far(count); });
  std::mt19937_64 random(1);
  std::shuffle(ids.begin(), ids.end(), random);
  Crowd crowd(options, options.connections);
  const size_t each = crowd[0].dialect().JobsEach(Verb::kCancel, options.window);
  size_t next = 0;
  const auto cancel = [&](size_t i) {
    const size_t count = std::min(each, ids.size() - next);
    if (count > 0) {
      crowd[i].Cancel(std::span<const uint64_t>(ids).subspan(next, count));
      next += count;
    }
  };
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  const int64_t end = begin + static_cast<int64_t>(options.seconds * 1e6);
  for (size_t i = 0; i < crowd.size(); ++i) {
    for (size_t n = 0; n < options.window; n += each) {
      cancel(i);
    }
  }
  size_t cancelled = 0;
  Latencies latencies;
  int64_t now = begin;
  for (; cancelled < ids.size() && now < end; now = NowMicros()) {
    crowd.Turn(end - now, [&](size_t i, const Answer& answer) {
      cancelled += answer.asked;
      latencies.Add(NowMicros() - answer.sent_us);
      cancel(i);
    });
  }
  const double seconds = static_cast<double>(now - begin) / 1e6;
  std::printf("{\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"cpu\":%.3f%s}\n",
              cancelled,
              seconds,
              static_cast<double>(cancelled) / seconds,
              CpuSeconds(options.pid) - cpu,
              latencies.Members("cancel").c_str());
}

}  // namespace delayd::load

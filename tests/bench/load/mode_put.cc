#include <cstdio>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/latencies.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/server_process.h"

namespace delayd::load {

void MeasurePut(const Options& options) {
  constexpr int64_t kWarmUpMicros = 300'000;
  JobMaker maker(options);
  FillPending(options, &maker);
  Crowd crowd(options, options.connections);
  const size_t each = crowd[0].dialect().JobsEach(Verb::kPut, options.window);
  for (size_t i = 0; i < crowd.size(); ++i) {
    for (size_t n = 0; n < options.window; n += each) {
      crowd[i].Put(maker.Far(each), NowMicros());
    }
  }
  const int64_t from = NowMicros() + kWarmUpMicros;
  const int64_t to = from + static_cast<int64_t>(options.seconds * 1e6);
  int64_t now = 0;
  const auto run_until = [&](int64_t end, size_t* count, Latencies* latencies) {
    while ((now = NowMicros()) < end) {
      crowd.Turn(end - now, [&](size_t i, const Answer& answer) {
        now = NowMicros();
        *count += answer.asked;
        latencies->Add(now - answer.sent_us);
        crowd[i].Put(maker.Far(each), now);
      });
    }
  };
  size_t ignored = 0;
  Latencies warm_up;
  run_until(from, &ignored, &warm_up);
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  size_t count = 0;
  Latencies latencies;
  run_until(to, &count, &latencies);
  const double seconds = static_cast<double>(NowMicros() - begin) / 1e6;
  std::printf("{\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"cpu\":%.3f%s}\n",
              count,
              seconds,
              static_cast<double>(count) / seconds,
              CpuSeconds(options.pid) - cpu,
              latencies.Members("put").c_str());
}

}  // namespace delayd::load

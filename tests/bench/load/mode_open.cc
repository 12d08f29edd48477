#include <cstdio>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/latencies.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/open_loop.h"
#include "tests/bench/load/server_process.h"

namespace delayd::load {

void MeasureOpen(const Options& options) {
  constexpr int64_t kWarmUpMicros = 300'000;
  JobMaker maker(options);
  FillPending(options, &maker);
  Crowd crowd(options, options.connections);
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  const int64_t from = begin + kWarmUpMicros;
  const int64_t to = from + static_cast<int64_t>(options.seconds * 1e6);
  OpenLoop loop(options.rate, begin);
  Latencies latencies;
  size_t answered = 0;
  // Every put that was due is sent, however late, and waited for: else the slow ones were left out.
  for (int64_t now = begin; loop.next_us() < to || answered < loop.count(); now = NowMicros()) {
    for (; loop.next_us() < to && loop.Due(now); now = NowMicros()) {
      const size_t at = loop.count() % crowd.size();
      crowd[at].Put(maker.Far(1), loop.Sent(now));
      crowd[at].connection().Flush();
    }
    crowd.Turn(loop.next_us() < to ? loop.next_us() - now : 100'000,
               [&](size_t, const Answer& answer) {
                 ++answered;
                 if (answer.sent_us >= from) {
                   latencies.Add(NowMicros() - answer.sent_us);
                 }
               });
  }
  std::printf("{\"count\":%zu,\"cpu\":%.3f%s}\n",
              answered,
              CpuSeconds(options.pid) - cpu,
              latencies.Members("put").c_str());
}

}  // namespace delayd::load

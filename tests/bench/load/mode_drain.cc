#include <cstdio>
#include <vector>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/server_process.h"
#include "tests/bench/load/worker.h"

namespace delayd::load {

void MeasureDrain(const Options& options) {
  JobMaker maker(options);
  FillPending(options, &maker);
  Fill(
      options, options.jobs, [&](size_t count) -> const auto& { return maker.DueAfter(0, count); });
  Crowd crowd(options, options.connections);
  std::vector<Worker> workers;
  for (size_t i = 0; i < crowd.size(); ++i) {
    workers.emplace_back(&crowd[i], options.window);
  }
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  const int64_t end = begin + static_cast<int64_t>(options.seconds * 1e6);
  for (Worker& worker : workers) {
    worker.Begin(false);
  }
  size_t acked = 0;
  int64_t now = begin;
  while (acked < options.jobs && now < end) {
    crowd.Turn(1000, [&](size_t i, const Answer& answer) {
      workers[i].Serve(answer);
      acked += answer.verb == Verb::kAck ? answer.asked : 0;
    });
    now = NowMicros();
    for (Worker& worker : workers) {
      worker.Poll(now);
    }
  }
  const double seconds = static_cast<double>(now - begin) / 1e6;
  std::printf("{\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"cpu\":%.3f}\n",
              acked,
              seconds,
              static_cast<double>(acked) / seconds,
              CpuSeconds(options.pid) - cpu);
}

}  // namespace delayd::load

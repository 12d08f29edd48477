#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/latencies.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/open_loop.h"
#include "tests/bench/load/server_process.h"
#include "tests/bench/load/worker.h"

namespace delayd::load {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kQuiet = 3 * kSecond;  // before the burst, for the probe

constexpr int64_t kSlackMin = 10 * kSecond;  // for a machine that others use, too

// How long the fill will take, from a few jobs that stay pending; half as much again to be sure.
int64_t FillMicros(const Options& options, JobMaker* maker) {
  const size_t sample = std::clamp<size_t>(options.jobs / 20, 1000, 50'000);
  const int64_t begin = NowMicros();
  Fill(
      options, sample, [maker](size_t count) -> const auto& { return maker->Far(count); });
  const int64_t expected = (NowMicros() - begin) * static_cast<int64_t>(options.jobs / sample + 1);
  return expected + std::max(expected / 2, kSlackMin);
}

// The jobs are due in the second that begins at `due`. Delays are whole seconds, as every server
// takes them.
void FillBurst(const Options& options, int64_t due, JobMaker* maker) {
  Fill(
      options, options.jobs, [&](size_t count) -> const auto& {
        const int64_t seconds = (due - NowMicros() + kSecond - 1) / kSecond;
        return maker->DueAfter(std::max<int64_t>(seconds, 0) * 1000, count);
      });
  if (NowMicros() > due - kQuiet / 2) {
    Fail("the server became slower while it was filled; the jobs were due before they were there");
  }
}

}  // namespace

void MeasureBurst(const Options& options) {
  JobMaker maker(options);
  FillPending(options, &maker);
  const int64_t due = NowMicros() + kQuiet + FillMicros(options, &maker) + kSecond;
  FillBurst(options, due, &maker);
  // delayd closes a connection that asks nothing for ten seconds, and the probe's first put comes
  // here.
  std::this_thread::sleep_for(std::chrono::microseconds(due - kQuiet - NowMicros()));
  Crowd crowd(options, options.connections + 1);
  const size_t probe = options.connections;
  std::vector<Worker> workers;
  for (size_t i = 0; i < options.connections; ++i) {
    workers.emplace_back(&crowd[i], options.window);
    workers.back().Begin(true);
  }
  OpenLoop loop(options.rate, std::max(NowMicros(), due - kQuiet));
  Latencies before;
  Latencies during;
  double cpu = 0;
  size_t acked = 0;
  bool begun = false;
  int64_t now = NowMicros();
  while (acked < options.jobs) {
    if (!begun && now >= due) {
      begun = true;
      cpu = CpuSeconds(options.pid);
    }
    for (; loop.Due(now); now = NowMicros()) {
      crowd[probe].Put(maker.Far(1), loop.Sent(now));
      crowd[probe].connection().Flush();
    }
    crowd.Turn(std::min<int64_t>(loop.next_us() - now, 1000), [&](size_t i, const Answer& answer) {
      if (i == probe) {
        (answer.sent_us < due ? before : during).Add(NowMicros() - answer.sent_us);
        return;
      }
      workers[i].Serve(answer);
      acked += answer.verb == Verb::kAck ? answer.asked : 0;
    });
    now = NowMicros();
    for (Worker& worker : workers) {
      worker.Poll(now);
    }
  }
  const double seconds = static_cast<double>(now - due) / 1e6;
  std::printf("{\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"cpu\":%.3f%s%s}\n",
              acked,
              seconds,
              static_cast<double>(acked) / seconds,
              CpuSeconds(options.pid) - cpu,
              before.Members("before").c_str(),
              during.Members("during").c_str());
}

}  // namespace delayd::load

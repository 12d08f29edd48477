#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
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

int64_t SentAt(std::string_view body) {
  const size_t dot = body.find('.');
  if (dot == std::string_view::npos) {
    Fail("the server has due jobs of another run; give it an empty directory");
  }
  return std::stoll(std::string(body.substr(0, dot)));
}

}  // namespace

// A payload begins with the moment at which its put was sent; the job is due a second later.
void MeasureLateness(const Options& options) {
  constexpr int64_t kDelayMs = 1000;
  JobMaker maker(options);
  FillPending(options, &maker);
  Crowd crowd(options, 1 + options.connections);
  Client& producer = crowd[0];
  std::vector<Worker> workers;
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  const auto jobs = static_cast<size_t>(options.rate * options.seconds);
  OpenLoop loop(options.rate, begin);
  Latencies puts;
  Latencies lateness;
  std::string body;
  for (size_t i = 1; i < crowd.size(); ++i) {
    workers.emplace_back(&crowd[i], options.window);
    workers.back().Begin(true);
  }
  size_t acked = 0;
  const auto serve = [&](size_t client, const Answer& answer) {
    const int64_t now = NowMicros();
    if (client == 0) {
      puts.Add(now - answer.sent_us);
      return;
    }
    for (const LeasedJob& job : answer.jobs) {
      lateness.Add(now - SentAt(job.body) - kDelayMs * 1000);
    }
    workers[client - 1].Serve(answer);
    acked += answer.verb == Verb::kAck ? answer.asked : 0;
  };
  while (acked < jobs) {
    int64_t now = NowMicros();
    for (; loop.count() < jobs && loop.Due(now); now = NowMicros()) {
      NewJob job = maker.DueAfter(kDelayMs, 1).front();
      body = std::to_string(now) + '.';
      body += job.body.substr(std::min(body.size(), job.body.size()));
      job.body = body;
      producer.Put({&job, 1}, loop.Sent(now));
      producer.connection().Flush();
    }
    crowd.Turn(loop.count() < jobs ? std::min<int64_t>(loop.next_us() - now, 1000) : 1000, serve);
    for (Worker& worker : workers) {
      worker.Poll(NowMicros());
    }
  }
  std::printf("{\"count\":%zu,\"cpu\":%.3f%s%s}\n",
              acked,
              CpuSeconds(options.pid) - cpu,
              lateness.Members("late").c_str(),
              puts.Members("put").c_str());
}

}  // namespace delayd::load

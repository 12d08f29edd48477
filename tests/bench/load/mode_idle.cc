#include <cstdio>

#include "tests/bench/load/crowd.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/server_process.h"

namespace delayd::load {

void MeasureIdle(const Options& options) {
  const int64_t before = ResidentKib(options.pid);
  Crowd crowd(options, options.connections);
  for (size_t i = 0; i < crowd.size(); ++i) {
    crowd[i].Lease(1, true);
  }
  crowd.Turn(0, [](size_t, const Answer&) { Fail("there was a job"); });
  // A put that is answered: the server has come to all that was sent before.
  JobMaker maker(options);
  Client last(options);
  last.Put(maker.Far(1), 0);
  while (last.Next() == nullptr) {
    last.connection().Exchange();
  }
  const int64_t kib = ResidentKib(options.pid) - before;
  std::printf("{\"connections\":%zu,\"kib\":%lld,\"kib_each\":%.2f}\n",
              options.connections,
              static_cast<long long>(kib),  // NOLINT(google-runtime-int)
              static_cast<double>(kib) / static_cast<double>(options.connections));
}

}  // namespace delayd::load

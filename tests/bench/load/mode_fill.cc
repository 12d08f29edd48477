#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/bench/load/client.h"
#include "tests/bench/load/fill.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/modes.h"
#include "tests/bench/load/server_process.h"

#include <sys/wait.h>

namespace delayd::load {
namespace {

// One attempt, in a process of its own: any failure ends that process only.
bool PutOne(const Options& options) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    JobMaker maker(options);
    Client client(options);
    client.Put(maker.Far(1), 0);
    while (client.Next() == nullptr) {
      client.connection().Exchange();
    }
    ::_exit(0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace

void MeasureFill(const Options& options) {
  JobMaker maker(options);
  const double cpu = CpuSeconds(options.pid);
  const int64_t begin = NowMicros();
  Fill(
      options, options.pending, [&](size_t count) -> const auto& { return maker.Far(count); });
  const double seconds = static_cast<double>(NowMicros() - begin) / 1e6;
  std::printf("{\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"cpu\":%.3f}\n",
              options.pending,
              seconds,
              static_cast<double>(options.pending) / seconds,
              CpuSeconds(options.pid) - cpu);
}

void MeasureFirst(const Options& options) {
  constexpr int64_t kPatienceMicros = 600'000'000;
  const int64_t end = NowMicros() + kPatienceMicros;
  while (!PutOne(options)) {
    if (NowMicros() > end) {
      Fail("no put was acknowledged");
    }
    ::usleep(1000);
  }
  std::printf("{\"acknowledged_us\":%lld}\n",
              static_cast<long long>(NowMicros()));  // NOLINT(google-runtime-int)
}

}  // namespace delayd::load

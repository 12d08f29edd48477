// storm_client: one client of a storm, in a process of its own (tests/storm/client.h).
//
//   storm_client SERVER HISTORY PROC SEED
//
// SERVER: that of the API, or beanstalk:PATH, the Unix socket for beanstalk clients.
// SIGUSR1: drain, acking everything. SIGTERM: finish the request under way and end.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/storm/api_client.h"
#include "tests/storm/tube_client.h"

#include <sys/prctl.h>

namespace {

volatile std::sig_atomic_t stopping = 0;
volatile std::sig_atomic_t draining = 0;

void OnSignal(int signal) {
  (signal == SIGUSR1 ? draining : stopping) = 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: storm_client SERVER HISTORY PROC SEED\n");
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGUSR1, OnSignal);
  delayd::storm::ClientOptions options{.server = argv[1],
                                       .history = argv[2],
                                       .proc = std::strtoull(argv[3], nullptr, 10),
                                       .seed = std::strtoull(argv[4], nullptr, 10)};
  std::unique_ptr<delayd::storm::Client> client;
  const auto is_stopping = [&client] {
    if (draining != 0) {
      client->Drain();
    }
    return stopping != 0;
  };
  const std::string beanstalk = "beanstalk:";
  if (options.server.starts_with(beanstalk)) {
    options.server.erase(0, beanstalk.size());
    client = std::make_unique<delayd::storm::TubeClient>(options, is_stopping);
  } else {
    client = std::make_unique<delayd::storm::ApiClient>(options, is_stopping);
  }
  client->Run();
  return 0;
}

// storm_client: one client of a storm, in a process of its own (tests/storm/client.h).
//
//   storm_client SERVER HISTORY PROC SEED
//
// SIGUSR1: drain, acking everything. SIGTERM: finish the request under way and end.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/storm/client.h"

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
  delayd::storm::StormClient* running = nullptr;
  delayd::storm::StormClient client({.server = argv[1],
                                     .history = argv[2],
                                     .proc = std::strtoull(argv[3], nullptr, 10),
                                     .seed = std::strtoull(argv[4], nullptr, 10)},
                                    [&running] {
                                      if (draining != 0) {
                                        running->Drain();
                                      }
                                      return stopping != 0;
                                    });
  running = &client;
  client.Run();
  return 0;
}

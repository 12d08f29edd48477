// simulation: runs delayd's engine through many lives, each from one seed, and holds it against the
// model.
//
//   simulation --seeds 2000              seeds 1 to 2000
//   simulation --seed 4711 --steps 600   one life; -v prints every input, fault and answer
//   simulation --seconds 60 --seed 9     seeds 9, 10, 11 ... until the time is over
//
// Exit code: 0 every check held, 1 a violation (with the command that replays it), 2 usage.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulation/simulation.h"

namespace {

using delayd::simulation::Choices;
using delayd::simulation::Result;
using delayd::simulation::Simulation;

struct Flags {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  uint64_t steps = 600;
  double seconds = 0;
  bool verbose = false;
};

// For the handler of failed checks: a line that replays what ran when the process died.
char replay_line[256];

void PrintReplay() {
  std::fprintf(stderr, "replay: %s\n", replay_line);
}

void OnAbort(int) {
  PrintReplay();
  std::_Exit(1);
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "-v") {
      flags->verbose = true;
      continue;
    }
    if (i + 1 == argc) {
      return false;
    }
    char* end = nullptr;
    const char* value = argv[++i];
    if (name == "--seed") {
      flags->seed = std::strtoull(value, &end, 0);
    } else if (name == "--seeds") {
      flags->seeds = std::strtoull(value, &end, 0);
    } else if (name == "--steps") {
      flags->steps = std::strtoull(value, &end, 0);
    } else if (name == "--seconds") {
      flags->seconds = std::strtod(value, &end);
    }
    if (end == nullptr || *end != '\0') {
      return false;
    }
  }
  return true;
}

void PrintTotal(const Result& total, uint64_t seeds, double seconds) {
  constexpr double kYearSeconds = 365.25 * 24 * 3600;
  const double years = total.simulated.count() / kYearSeconds;
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("%llu seeds, %llu steps, %.1f s: every check held\n",
              number(seeds),
              number(total.step),
              seconds);
  std::printf("%llu commands, %llu answers, %llu hand-outs, %llu commits\n",
              number(total.commands),
              number(total.answers),
              number(total.hand_outs),
              number(total.commits));
  std::printf(
      "%llu kills, %llu reboots, %llu copies put back, %llu settings of the clock (%llu suspect), "
      "%llu suspends\n",
      number(total.kills),
      number(total.reboots),
      number(total.restores),
      number(total.clock_steps),
      number(total.clock_suspicions),
      number(total.suspends));
  std::printf("%llu starts with another configuration; refused:", number(total.edits));
  for (const auto& [reason, count] : total.refusals) {
    std::printf(" %s %llu", reason.c_str(), number(count));
  }
  std::printf("\n%.0f simulated years, %.0f per hour\n", years, years / seconds * 3600);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: simulation [--seed N] [--seeds N] [--steps N] [--seconds N] [-v]\n");
    return 2;
  }
  signal(SIGABRT, OnAbort);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Result total;
  uint64_t done = 0;
  for (uint64_t seed = flags.seed;
       flags.seconds > 0 ? elapsed() < flags.seconds : done < flags.seeds;
       ++seed, ++done) {
    std::snprintf(replay_line,
                  sizeof replay_line,
                  "%s --seed %llu --steps %llu -v",
                  argv[0],
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(flags.steps));
    Simulation simulation{Choices(seed)};
    simulation.set_verbose(flags.verbose);
    const Result result = simulation.Run(flags.steps);
    if (!result.violation.empty()) {
      std::fprintf(stderr,
                   "VIOLATION: seed %llu, step %llu: %s\n",
                   static_cast<unsigned long long>(seed),
                   static_cast<unsigned long long>(result.step),
                   result.violation.c_str());
      PrintReplay();
      return 1;
    }
    total.Add(result);
  }
  PrintTotal(total, done, elapsed());
  return 0;
}

// storm: the real daemon under load, killed at random and at every named place of its code; the
// clients' histories are held against the promises.
//
//   storm [--cycles N] [--seconds S] [--seed N] [--per-storm N] [--point NAME[:HIT]]
//   storm --power-cut [--file-system ext4|xfs] [--cycles N] ...
//   storm --io-faults [--cycles N] ...
//
// A cycle is one death of the daemon and its next start. A storm is up to --per-storm cycles on one
// data directory, then a drain and the verdict. --point kills at one place only; --power-cut stops
// the file system under the daemon instead (root and a loop device needed); with --io-faults every
// death is one call of its disk that fails.
// Exit code: 0 every promise was kept, 1 a violation, 2 usage, 77 this machine allows no power cut.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "tests/storm/storm.h"
#include "tests/support/temp_dir.h"

namespace delayd::storm {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// As ctest takes it.
constexpr int kSkipped = 77;

struct Flags {
  uint64_t cycles = 40;
  double seconds = 0;  // 0: --cycles counts
  uint64_t seed = std::random_device()();
  uint64_t per_storm = 50;
  std::string point;
  uint32_t hit = 0;  // 0: drawn
  bool power_cut = false;
  std::string file_system = "ext4";
  bool io_faults = false;
};

struct Totals {
  uint64_t cycles = 0;
  uint64_t storms = 0;
  uint64_t enqueued = 0;
  uint64_t delivered = 0;
  uint64_t unknown = 0;
  uint64_t events = 0;
  std::map<std::string, uint64_t> reached;
};

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--power-cut" || name == "--io-faults") {
      (name == "--power-cut" ? flags->power_cut : flags->io_faults) = true;
      --i;
      continue;
    }
    if (i + 1 == argc) {
      return false;
    }
    const std::string value = argv[i + 1];
    if (name == "--cycles") {
      flags->cycles = std::stoull(value);
    } else if (name == "--file-system" && (value == "ext4" || value == "xfs")) {
      flags->file_system = value;
    } else if (name == "--seconds") {
      flags->seconds = std::stod(value);
    } else if (name == "--seed") {
      flags->seed = std::stoull(value);
    } else if (name == "--per-storm") {
      flags->per_storm = std::stoull(value);
    } else if (name == "--point") {
      const size_t colon = value.find(':');
      flags->point = value.substr(0, colon);
      flags->hit = colon == std::string::npos
                       ? 0
                       : static_cast<uint32_t>(std::stoul(value.substr(colon + 1)));
    } else {
      return false;
    }
  }
  return true;
}

class Season {
 public:
  explicit Season(const Flags& flags) : flags_(flags), start_(std::chrono::steady_clock::now()) {}

  int Run() {
    while (!Over()) {
      if (!RunStorm(flags_.seed + totals_.storms)) {
        return 1;
      }
    }
    std::printf(
        "%llu cycles in %llu storms: %llu jobs, %llu hand-outs, %llu requests without an answer, "
        "%llu events checked, 0 violations\n",
        static_cast<unsigned long long>(totals_.cycles),
        static_cast<unsigned long long>(totals_.storms),
        static_cast<unsigned long long>(totals_.enqueued),
        static_cast<unsigned long long>(totals_.delivered),
        static_cast<unsigned long long>(totals_.unknown),
        static_cast<unsigned long long>(totals_.events));
    for (const auto& [name, count] : totals_.reached) {
      std::printf("  %6llu deaths at %s\n", static_cast<unsigned long long>(count), name.c_str());
    }
    return MissedPoints() ? 1 : 0;
  }

 private:
  bool Over() const {
    if (flags_.seconds > 0) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
      return passed.count() >= flags_.seconds;
    }
    return totals_.cycles >= flags_.cycles;
  }

  // One after the other, so that every place has its turn; in between, deaths at random.
  void Cycle(Storm* storm, CutFileSystem* disk, std::mt19937_64* random) {
    ++totals_.cycles;
    if (flags_.power_cut) {
      ++totals_.reached["a power cut"];
      return storm->CutPower(disk);
    }
    const uint64_t dice = (*random)() % 100;
    if (flags_.io_faults || (flags_.point.empty() && dice >= 90)) {
      return FailIo(storm, random);
    }
    if (flags_.point.empty() && dice < 40) {
      ++totals_.reached["a random moment"];
      return storm->KillAtRandom();
    }
    if (flags_.point.empty() && dice < 45) {
      ++totals_.reached["a stop in order"];
      return storm->StopInOrder();
    }
    const auto cases = CrashPointCases();
    const CrashPointCase* point = nullptr;
    for (size_t tried = 0; point == nullptr && tried < cases.size(); ++tried) {
      const CrashPointCase& next = cases[next_case_++ % cases.size()];
      if (next.when != Reached::kOnFirstStart &&
          (flags_.point.empty() || flags_.point == next.name)) {
        point = &next;
      }
    }
    if (point == nullptr) {
      std::fprintf(stderr, "storm: no place is named %s\n", flags_.point.c_str());
      std::exit(2);
    }
    // The first round takes the first hit: it shows that every place is reached.
    const bool first_round = next_case_ <= cases.size();
    const uint32_t hit = flags_.hit != 0 ? flags_.hit
                         : first_round   ? 1
                                         : 1 + static_cast<uint32_t>((*random)() % point->hits_max);
    const bool reached = storm->CrashAt(*point, hit);
    totals_.reached[point->name] += reached ? 1U : 0U;
  }

  // One kind after the other here too.
  void FailIo(Storm* storm, std::mt19937_64* random) {
    const IoFaultCase& fault = IoFaultCases()[next_fault_++ % IoFaultCases().size()];
    const bool ended = storm->FailIo(fault, static_cast<uint32_t>((*random)() % fault.calls_max));
    ++totals_.reached[std::string("a failed ") + fault.call + ", " + fault.fault +
                      (ended ? "" : ": harmless, killed later")];
  }

  bool RunStorm(uint64_t seed) {
    auto work = std::make_unique<test::TempDir>();
    std::printf("storm seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    std::mt19937_64 random(seed ^ 0x5702);
    CutFileSystem disk(work->path(), flags_.file_system);
    if (flags_.power_cut) {
      if (const std::string why = disk.Make(); !why.empty()) {
        std::printf("SKIPPED: no power can be cut here: %s\n", why.c_str());
        std::exit(kSkipped);
      }
    }
    Storm storm({.seed = seed,
                 .directory = work->path(),
                 .data_dir = (flags_.power_cut ? disk.path() : work->path()) + "/data"});
    storm.Begin();
    for (uint64_t n = 0; n < flags_.per_storm && storm.ok() && !Over(); ++n) {
      Cycle(&storm, &disk, &random);
    }
    storm.Finish();
    ++totals_.storms;
    totals_.enqueued += storm.verdict().enqueued;
    totals_.delivered += storm.verdict().delivered;
    totals_.unknown += storm.verdict().unknown;
    totals_.events += storm.verdict().events;
    if (storm.ok()) {
      return true;
    }
    for (const std::string& violation : storm.violations()) {
      std::printf("VIOLATION: %s\n", violation.c_str());
    }
    std::printf("recheck: %s/history_check %s\nanother of this seed: %s/storm --seed %llu\n",
                DELAYD_BIN_DIR,
                storm.history_path().c_str(),
                DELAYD_BIN_DIR,
                static_cast<unsigned long long>(seed));
    (void)work.release();  // stays, for whoever looks into it
    return false;
  }

  // After two whole rounds a place without a death is a hole in the storm.
  bool MissedPoints() const {
    bool missed = false;
    if (flags_.point.empty() && next_case_ >= 2 * CrashPointCases().size()) {
      for (const CrashPointCase& point : CrashPointCases()) {
        if (point.when != Reached::kOnFirstStart && totals_.reached.at(point.name) == 0) {
          std::printf("NOT REACHED: %s\n", point.name);
          missed = true;
        }
      }
    }
    return missed;
  }

  const Flags flags_;
  const SteadyTime start_;
  Totals totals_;
  size_t next_case_ = 0;
  size_t next_fault_ = 0;
};

}  // namespace
}  // namespace delayd::storm

int main(int argc, char** argv) {
  delayd::storm::Flags flags;
  if (!delayd::storm::Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: storm [--power-cut [--file-system ext4|xfs] | --io-faults] [--cycles N] "
                 "[--seconds S] [--seed N] [--per-storm N] [--point NAME[:HIT]]\n");
    return 2;
  }
  return delayd::storm::Season(flags).Run();
}

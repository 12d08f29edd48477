// bit_rot: a stopped data directory with one bit flipped, one block zeroed, one file cut short or
// gone. What was acknowledged must be handed out as it was, or be named; never another payload.
//
//   bit_rot [--count N] [--seconds S] [--seed N] [--daemon]   --daemon: through the real delayd
//   bit_rot --check DIR --file NAME --seed N [--killed]     a damaged copy again
//
// Exit code: 0 nothing was lost in silence, 1 a violation, 2 usage.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "storage/log_scan.h"
#include "tests/storm/rot_daemon.h"
#include "tests/storm/rot_store.h"
#include "tests/support/temp_dir.h"

namespace delayd::storm {
namespace {

namespace fs = std::filesystem;

struct Flags {
  uint64_t count = 100;
  double seconds = 0;
  uint64_t seed = std::random_device()();
  std::string check;
  std::string file;
  bool killed = false;
  bool daemon = false;
};

struct Damage {
  std::string file;
  std::string what;
};

char replay_line[1024];

void OnAbort(int /*signal*/) {
  std::fprintf(stderr, "VIOLATION: the process died\nreplay: %s\n", replay_line);
  std::_Exit(1);
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--killed" || name == "--daemon") {
      (name == "--killed" ? flags->killed : flags->daemon) = true;
      continue;
    }
    if (++i == argc) {
      return false;
    }
    const std::string value = argv[i];
    if (name == "--count") {
      flags->count = std::stoull(value);
    } else if (name == "--seconds") {
      flags->seconds = std::stod(value);
    } else if (name == "--seed") {
      flags->seed = std::stoull(value);
    } else if (name == "--check") {
      flags->check = value;
    } else if (name == "--file") {
      flags->file = value;
    } else {
      return false;
    }
  }
  return true;
}

// What is found in a damaged copy, by the store itself or through a daemon that works in `work`.
RotFinding Check(const Flags& flags,
                 const std::string& copy,
                 const std::string& file,
                 const RotJobs& jobs,
                 const std::string& work) {
  return flags.daemon ? CheckRottenDaemon(copy, file, jobs, work)
                      : CheckRottenStore(copy, file, jobs);
}

// Half by size, so that every byte has its chance; half by file, so that the small ones have
// theirs.
std::string PickFile(const std::string& directory, std::mt19937_64* random) {
  std::vector<std::pair<std::string, uint64_t>> files;
  uint64_t total = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.file_size() > 0) {
      files.emplace_back(entry.path().filename().string(), entry.file_size());
      total += entry.file_size();
    }
  }
  std::ranges::sort(files);
  if ((*random)() % 2 == 0) {
    return files[(*random)() % files.size()].first;
  }
  uint64_t at = (*random)() % total;
  for (const auto& [name, size] : files) {
    if (at < size) {
      return name;
    }
    at -= size;
  }
  return files.back().first;
}

Damage DoDamage(const std::string& directory, std::mt19937_64* random) {
  Damage damage{.file = PickFile(directory, random), .what = ""};
  const std::string path = directory + "/" + damage.file;
  const uint64_t size = fs::file_size(path);
  const uint64_t at = (*random)() % size;
  const uint64_t dice = (*random)() % 100;
  if (dice >= 85) {
    const bool gone = dice >= 97;
    gone ? (void)fs::remove(path) : fs::resize_file(path, at);
    damage.what = gone ? "gone" : "cut at byte " + std::to_string(at);
    return damage;
  }
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  if (dice < 70) {
    file.seekg(static_cast<std::streamoff>(at));
    const int bit = static_cast<int>((*random)() % 8);
    const char flipped = static_cast<char>(file.get() ^ (1 << bit));
    file.seekp(static_cast<std::streamoff>(at));
    file.put(flipped);
    damage.what = "bit " + std::to_string(bit) + " of byte " + std::to_string(at) + " flipped";
    return damage;
  }
  const uint64_t block = (*random)() % 2 == 0 ? 512 : 4096;
  const uint64_t begin = at / block * block;
  file.seekp(static_cast<std::streamoff>(begin));
  for (uint64_t i = begin; i < std::min(begin + block, size); ++i) {
    file.put('\0');
  }
  damage.what = "block at byte " + std::to_string(begin) + " zeroed";
  return damage;
}

// docs/storage-format.md, "What stays unseen": after a kill the newest log may end at a record's
// boundary and nobody can tell.
bool UnseenByDesign(const std::string& before, const std::string& directory, const Damage& damage) {
  std::string newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(before)) {
    const std::string name = entry.path().filename().string();
    newest = name.ends_with(".log") ? std::max(newest, name) : newest;
  }
  if (damage.file != newest) {
    return false;
  }
  const std::string path = directory + "/" + damage.file;
  if (!fs::exists(path)) {
    return true;
  }
  const auto scan = storage::ScanLogFile(path);
  return scan.ok() && !scan->damaged_at;
}

class Rot {
 public:
  explicit Rot(const Flags& flags) : flags_(flags) {
    for (const bool in_order : {true, false}) {
      jobs_[in_order] = BuildRotStore(Master(in_order), flags.seed, in_order);
    }
  }

  int Run() {
    std::printf("bit_rot seed %llu, %zu jobs\n",
                static_cast<unsigned long long>(flags_.seed),
                jobs_[true].size());
    std::mt19937_64 random(flags_.seed);
    const auto start = std::chrono::steady_clock::now();
    const auto over = [&] {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      return flags_.seconds > 0 ? passed.count() >= flags_.seconds : cases_ >= flags_.count;
    };
    while (!over()) {
      ++cases_;
      if (!Case(random() % 2 == 0, &random)) {
        return 1;
      }
    }
    std::printf(
        "%llu cases: %llu harmless, %llu found and named, %llu unseen by design, 0 lost in "
        "silence\n",
        static_cast<unsigned long long>(cases_),
        static_cast<unsigned long long>(harmless_),
        static_cast<unsigned long long>(named_),
        static_cast<unsigned long long>(unseen_));
    return 0;
  }

 private:
  std::string Master(bool in_order) const { return dir_.Sub(in_order ? "stopped" : "killed"); }

  bool Case(bool in_order, std::mt19937_64* random) {
    const std::string copy = dir_.Sub("copy");
    fs::remove_all(copy);
    fs::copy(Master(in_order), copy);
    const Damage damage = DoDamage(copy, random);
    const bool unseen = !in_order && UnseenByDesign(Master(in_order), copy, damage);
    const std::string kept = dir_.path() + "-damaged";
    const std::string replay = std::string(DELAYD_BIN_DIR) + "/bit_rot --check " + kept +
                               " --file " + damage.file + " --seed " + std::to_string(flags_.seed) +
                               (in_order ? "" : " --killed") + (flags_.daemon ? " --daemon" : "");
    std::snprintf(replay_line, sizeof replay_line, "%s", replay.c_str());
    // The damaged directory as it is before anybody repairs it.
    fs::remove_all(kept);
    fs::copy(copy, kept);
    const RotFinding finding = Check(flags_, copy, damage.file, jobs_.at(in_order), dir_.path());
    if (!finding.violation.empty() && !unseen) {
      std::printf("VIOLATION: case %llu, %s %s: %s\n",
                  static_cast<unsigned long long>(cases_),
                  damage.file.c_str(),
                  damage.what.c_str(),
                  finding.violation.c_str());
      for (const std::string& text : finding.named) {
        std::printf("  said: %s\n", text.c_str());
      }
      std::printf("replay: %s\n", replay_line);
      return false;
    }
    fs::remove_all(kept);
    ++(unseen ? unseen_ : finding.harmless ? harmless_ : named_);
    return true;
  }

  const Flags flags_;
  const test::TempDir dir_;
  std::map<bool, RotJobs> jobs_;
  uint64_t cases_ = 0;
  uint64_t harmless_ = 0;
  uint64_t named_ = 0;
  uint64_t unseen_ = 0;
};

int CheckAgain(const Flags& flags) {
  const test::TempDir dir;
  const RotJobs jobs = BuildRotStore(dir.Sub("built"), flags.seed, !flags.killed);
  fs::copy(flags.check, dir.Sub("copy"));
  const RotFinding finding = Check(flags, dir.Sub("copy"), flags.file, jobs, dir.path());
  for (const std::string& text : finding.named) {
    std::printf("said: %s\n", text.c_str());
  }
  std::printf("%s\n",
              !finding.violation.empty() ? ("VIOLATION: " + finding.violation).c_str()
              : finding.harmless         ? "harmless"
                                         : "found and named");
  return finding.violation.empty() ? 0 : 1;
}

}  // namespace
}  // namespace delayd::storm

int main(int argc, char** argv) {
  delayd::storm::Flags flags;
  if (!delayd::storm::Parse(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: bit_rot [--count N] [--seconds S] [--seed N] [--daemon]\n"
                 "       bit_rot --check DIR --file NAME --seed N [--killed] [--daemon]\n");
    return 2;
  }
  std::signal(SIGABRT, delayd::storm::OnAbort);
  std::signal(SIGSEGV, delayd::storm::OnAbort);
  return flags.check.empty() ? delayd::storm::Rot(flags).Run() : delayd::storm::CheckAgain(flags);
}

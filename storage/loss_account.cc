#include "storage/loss_account.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/coding.h"
#include "storage/batch_floor.h"
#include "storage/files.h"
#include "storage/posix_error.h"

namespace delayd::storage {
namespace {

constexpr std::string_view kName = "/RECOVERY";
constexpr std::string_view kSealPrefix = "crc ";
// Two lists of kLostJobsMax numbers take at most 420 KB.
constexpr size_t kAccountBytesMax = size_t{1} << 20;

// The last line of the file.
std::string Seal(std::string_view lines) {
  char seal[16];
  std::snprintf(seal, sizeof seal, "%08x\n", Crc32c(lines));
  return std::string(kSealPrefix) + seal;
}

std::string Line(std::string_view name, const std::set<JobId>& jobs) {
  std::string line(name);
  for (const JobId id : jobs) {
    line += " " + std::to_string(ToInt(id));
  }
  return line + "\n";
}

std::string Encode(const RecoveryReport& report, uint64_t batch_number_floor) {
  const std::string lines = "lost_batches " + std::to_string(report.lost_batches) +
                            "\nlost_ids_end " + std::to_string(report.lost_ids_end) +
                            "\nbatch_number_floor " + std::to_string(batch_number_floor) + "\n" +
                            Line("lost_jobs", report.lost_jobs) +
                            Line("ended_jobs", report.ended_jobs);
  return lines + Seal(lines);
}

// Nothing if the text is not what a recovery wrote, in full.
std::optional<RecoveryReport> Decode(const std::string& text) {
  const size_t seal = text.rfind(kSealPrefix);
  if (seal == std::string::npos || text.substr(seal) != Seal(text.substr(0, seal))) {
    return std::nullopt;
  }
  RecoveryReport report;
  std::istringstream lines(text.substr(0, seal));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const std::vector<uint64_t> numbers(std::istream_iterator<uint64_t>(words), {});
    const uint64_t number = numbers.empty() ? 0 : numbers.front();
    if (name == "lost_batches") {
      report.lost_batches = number;
    } else if (name == "lost_ids_end") {
      report.lost_ids_end = number;
    } else if (name == "batch_number_floor") {
      report.batch_number_floor = number;
    } else {
      std::set<JobId>& jobs = name == "lost_jobs" ? report.lost_jobs : report.ended_jobs;
      for (const uint64_t id : numbers) {
        jobs.insert(JobId{id});
      }
    }
  }
  return report;
}

// A log that was not cut yet has reported the same jobs again.
void Merge(const std::set<JobId>& from, std::set<JobId>* to) {
  to->insert(from.begin(), from.end());
  while (to->size() > kLostJobsMax) {
    to->erase(std::prev(to->end()));
  }
}

StatusOr<std::optional<std::string>> ReadAccount(const std::string& directory) {
  return ReadFileIfThere(directory + std::string(kName), kAccountBytesMax);
}

}  // namespace

Status RefuseUnfinished(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const auto account, ReadAccount(directory));
  return account.has_value()
             ? DataLoss("data directory " + directory +
                            " is damaged: a recovery that gave up acknowledged changes was cut "
                            "short before its tables were mended; run delayctl recover "
                            "--accept-loss again, or restore a backup",
                        "damaged_store")
             : OkStatus();
}

Status AddEarlierLoss(const std::string& directory, RecoveryReport* report) {
  DELAYD_ASSIGN_OR_RETURN(const auto account, ReadAccount(directory));
  if (!account.has_value()) {
    return OkStatus();
  }
  const std::optional<RecoveryReport> earlier = Decode(*account);
  report->begun_before =
      earlier.has_value() ? RecoveryReport::Begun::kKnown : RecoveryReport::Begun::kUnreadable;
  if (earlier.has_value()) {
    report->lost_batches = std::max(report->lost_batches, earlier->lost_batches);
    report->lost_ids_end = std::max(report->lost_ids_end, earlier->lost_ids_end);
    report->batch_number_floor = std::max(report->batch_number_floor, earlier->batch_number_floor);
    Merge(earlier->lost_jobs, &report->lost_jobs);
    Merge(earlier->ended_jobs, &report->ended_jobs);
  }
  return OkStatus();
}

Status BeginRecovery(const std::string& directory, const RecoveryReport& report) {
  // Keeps the floor here, because an open sets BATCH back to what is left.
  const uint64_t floor =
      std::max(report.batch_number_floor, BatchFloor(directory).Read().value_or(0));
  return WriteFileDurably(directory + std::string(kName), Encode(report, floor));
}

Status EndRecovery(const std::string& directory) {
  const std::string path = directory + std::string(kName);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return PosixError("cannot remove", path);
  }
  return SyncFile(directory);
}

}  // namespace delayd::storage

#include "daemon/offline.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/errno_text.h"
#include "base/limits.h"
#include "daemon/engine/engine.h"
#include "daemon/exit_codes.h"
#include "daemon/file_limit.h"
#include "daemon/store_admin.h"
#include "protocol/store_json.h"
#include "storage/data_dir.h"
#include "storage/loss_account.h"
#include "storage/marks_after_loss.h"
#include "storage/posix_error.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"
#include "storage/verify.h"

#include <sys/stat.h>

namespace delayd {
namespace {

using protocol::RecoverResult;
using protocol::VerifyResult;

constexpr uint64_t kRowsPerProgress = 8192;

// One verify repairs a bounded number of findings, and its repairs may uncover further ones.
constexpr int kRepairRoundsMax = 1000;

// False: the line could not be written, so its reader does not get it.
bool Print(const protocol::StoreLine& line) {
  const std::string text = protocol::StoreLineToJson(line) + "\n";
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

int Refuse(const Status& status) {
  Print(status);
  return ExitCodeOf(status, kExitDataDir);
}

// Checks that the data directory exists; as root, switches to its owner.
Status Enter(const std::string& data_dir) {
  struct stat info {};

  const bool is_there = ::stat(data_dir.c_str(), &info) == 0;
  if (!is_there && errno == EACCES) {
    return storage::PosixError("cannot look at the data directory", data_dir);
  }
  if (!is_there || !S_ISDIR(info.st_mode)) {
    return NotFound(
        "there is no data directory at " + data_dir + "; is its disk mounted? else check the path",
        "no_store");
  }
  if (::geteuid() != 0 || info.st_uid == 0) {
    return OkStatus();
  }
  if (::setgroups(0, nullptr) != 0 || ::setgid(info.st_gid) != 0 || ::setuid(info.st_uid) != 0) {
    return PermissionDenied("cannot become the owner of " + data_dir + ": " + ErrnoText(errno) +
                            "; run as that user");
  }
  return OkStatus();
}

storage::VerifyProgress PrintProgress(const storage::JobReader& store) {
  return [total = storage::EstimateRows(store)](storage::Table table, uint64_t rows) {
    if (rows % kRowsPerProgress == 0) {
      Print(protocol::StoreProgress{
          .table = std::string(storage::TableName(table)), .rows = rows, .rows_total = total});
    }
    return true;
  };
}

StatusOr<VerifyResult> LookOnly(const std::string& data_dir) {
  storage::RecoveryReport recovery;
  DELAYD_ASSIGN_OR_RETURN(const auto store,
                          storage::OpenRocksJobReader({.path = data_dir}, &recovery));
  DELAYD_ASSIGN_OR_RETURN(const storage::VerifyReport report,
                          storage::VerifyStore(*store, PrintProgress(*store)));
  VerifyResult result = VerifyResultOf(report);
  result.notes = recovery.Lines();
  return result;
}

// Returns the findings of the first round, and how many of them are repaired after the last round.
// The report of the last round goes to `last`.
StatusOr<VerifyResult> RepairAll(storage::JobStore* store, storage::VerifyReport* last = nullptr) {
  std::optional<VerifyResult> first;
  uint64_t left_count = 0;
  for (int round = 0; round < kRepairRoundsMax; ++round) {
    DELAYD_ASSIGN_OR_RETURN(storage::VerifyReport report,
                            storage::VerifyStore(*store, PrintProgress(*store)));
    left_count = report.disagreement_count;
    if (!first.has_value()) {
      first = VerifyResultOf(report);
    }
    const bool is_last = report.repair.empty();
    if (!is_last) {
      DELAYD_RETURN_IF_ERROR(store->Commit(report.repair));
    }
    if (last != nullptr) {
      *last = std::move(report);
    }
    if (is_last) {
      break;
    }
  }
  first->repaired = first->disagreements - std::min(left_count, first->disagreements);
  return *std::move(first);
}

StatusOr<VerifyResult> Repair(const std::string& data_dir) {
  storage::RecoveryReport recovery;
  DELAYD_ASSIGN_OR_RETURN(
      const auto store,
      storage::OpenRocksJobStore({.path = data_dir, .must_exist = true}, &recovery));
  DELAYD_ASSIGN_OR_RETURN(VerifyResult result, RepairAll(store.get()));
  result.notes = recovery.Lines();
  DELAYD_RETURN_IF_ERROR(store->Close());
  return result;
}

bool IsDamaged(const storage::RecoveryReport& report) {
  return report.begun_before == storage::RecoveryReport::Begun::kUnreadable ||
         report.lost_batches > 0 || report.batch_number < report.batch_number_floor;
}

bool ListsAreCapped(const storage::RecoveryReport& report) {
  return std::max(report.lost_jobs.size(), report.ended_jobs.size()) >= storage::kLostJobsMax;
}

Status Describe(const storage::RecoveryReport& report,
                const storage::JobReader& store,
                RecoverResult* result) {
  result->damaged = IsDamaged(report);
  result->lost_batches = report.lost_batches;
  // The damaged batch itself cannot be read, and jobs that are in no log cannot be listed.
  result->lists_complete = !result->damaged;
  result->notes = report.Lines();
  DELAYD_ASSIGN_OR_RETURN(storage::LossByJob loss, storage::SortLostJobs(report, store));
  result->gone = std::move(loss.gone);
  result->older = std::move(loss.older);
  result->revived = std::move(loss.revived);
  result->lists_capped = ListsAreCapped(report);
  if (loss.unread > 0) {
    result->lists_complete = false;
    result->notes.push_back(std::to_string(loss.unread) +
                            " jobs of what is lost are in no list: their rows cannot be read");
  }
  return OkStatus();
}

// Notes damaged table files, which no recovery repairs, before the loss is accepted. Disagreements
// between tables are not noted: the loss may be their cause.
Status NoteDamagedTables(const storage::JobReader& store, RecoverResult* result) {
  DELAYD_ASSIGN_OR_RETURN(const storage::VerifyReport report,
                          storage::VerifyStore(store, PrintProgress(store)));
  result->unread = !report.unread.empty();
  for (const std::string& reason : report.unread) {
    result->notes.push_back("a table file is damaged: " + reason);
  }
  return OkStatus();
}

// Would a damaged table file prevent a start even after the loss is accepted? Tables that disagree
// would not: they are repaired first. Once a recovery has begun, it is finished regardless.
Status CheckStart(const Config& config,
                  const storage::RecoveryReport& report,
                  const storage::JobReader& store) {
  if (report.begun_before != storage::RecoveryReport::Begun::kNo) {
    return OkStatus();
  }
  // These two decide how far a start reads.
  const engine::EngineOptions options{
      .horizon = config.memory.horizon,
      .memory_jobs_max = config.memory.budget / limits::kMemoryBytesPerJob};
  const Status loaded = engine::Engine::Load(options, store, SystemClock().Sample()).status();
  return loaded.reason() == "damaged_store"
             ? loaded.WithContext("the daemon would not start behind the loss either")
             : OkStatus();
}

StatusOr<RecoverResult> ShowLoss(const Config& config) {
  storage::RecoveryReport report;
  RecoverResult result;
  const auto store =
      storage::OpenRocksJobReader({.path = config.data_dir, .accept_loss = true}, &report);
  if (store.ok()) {
    DELAYD_RETURN_IF_ERROR(Describe(report, **store, &result));
    // No daemon starts while a recovery is unfinished, whatever it has given up so far.
    result.damaged |= report.begun_before != storage::RecoveryReport::Begun::kNo;
    DELAYD_RETURN_IF_ERROR(NoteDamagedTables(**store, &result));
    if (const Status start = CheckStart(config, report, **store); !start.ok()) {
      result.opens = false;
      result.notes.push_back(start.message());
    }
    return result;
  }
  if (report.lost_batches == 0) {
    return store.status();
  }
  // Only the logs could be read, and the rest of the store cannot be read without what they lost:
  // this much is known.
  result = {.damaged = true,
            .opens = false,
            .lost_batches = report.lost_batches,
            .lists_complete = false,
            .lists_capped = ListsAreCapped(report),
            .gone = {report.lost_jobs.begin(), report.lost_jobs.end()},
            .revived = {report.ended_jobs.begin(), report.ended_jobs.end()},
            .notes = report.Lines()};
  result.notes.push_back("the tables were not looked at: " + store.status().message());
  return result;
}

// Tables are flushed one by one, so a change that is lost from one may still be in another. Repairs
// rows that can be derived from others, and notes what disagreed and what still does.
Status MendTables(storage::JobStore* store,
                  RecoverResult* result,
                  std::vector<std::string>* notes) {
  storage::VerifyReport left;
  DELAYD_ASSIGN_OR_RETURN(const VerifyResult found, RepairAll(store, &left));
  if (found.disagreements == 0) {
    return OkStatus();
  }
  result->still_wrong = left.disagreement_count;
  result->unread = !left.unread.empty();
  notes->push_back("tables disagreed after the loss in " + std::to_string(found.disagreements) +
                   " places; " + std::to_string(found.repaired) + " were put right");
  for (const storage::Disagreement& disagreement : left.disagreements) {
    notes->push_back("still wrong: " + disagreement.what);
  }
  return OkStatus();
}

// Checks, before anything is given up, that a start would succeed. If the store does not open, the
// recovery itself reports why.
Status LookBeforeLoss(const Config& config) {
  storage::RecoveryReport report;
  const auto store =
      storage::OpenRocksJobReader({.path = config.data_dir, .accept_loss = true}, &report);
  return store.ok() ? CheckStart(config, report, **store).WithContext("nothing was changed")
                    : OkStatus();
}

// The file RECOVERY stays until the loss has been reported. If the process is killed before that,
// the next run reports it.
StatusOr<RecoverResult> AcceptLoss(const Config& config) {
  storage::RecoveryReport report;
  RecoverResult result;
  DELAYD_RETURN_IF_ERROR(LookBeforeLoss(config));
  DELAYD_ASSIGN_OR_RETURN(
      const auto store,
      storage::OpenRocksJobStore({.path = config.data_dir, .must_exist = true, .accept_loss = true},
                                 &report));
  // Done whether or not a loss was found: if a whole log is missing, nothing else shows it.
  std::vector<std::string> notes;
  DELAYD_RETURN_IF_ERROR(storage::RaiseMarksAfterLoss(report, store.get(), &notes));
  DELAYD_CRASH_POINT("recover/marks_raised");
  DELAYD_RETURN_IF_ERROR(MendTables(store.get(), &result, &notes));
  DELAYD_CRASH_POINT("recover/mended");
  DELAYD_RETURN_IF_ERROR(Describe(report, *store, &result));
  result.lists_complete = result.lists_complete && notes.empty();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  result.changed = true;
  DELAYD_RETURN_IF_ERROR(store->Close());
  return result;
}

// Takes the lock again, which the closed store has released.
Status EndRecovery(const std::string& data_dir) {
  DELAYD_ASSIGN_OR_RETURN(const auto locked,
                          storage::DataDir::Acquire(data_dir, /*must_exist=*/true));
  return storage::EndRecovery(data_dir);
}

}  // namespace

int VerifyOffline(const Config& config, bool repair) {
  RaiseFileLimit();
  if (const Status status = Enter(config.data_dir); !status.ok()) {
    return Refuse(status);
  }
  const SystemClock clock;
  const BootTime start = clock.Sample().boot;
  StatusOr<VerifyResult> result = repair ? Repair(config.data_dir) : LookOnly(config.data_dir);
  if (!result.ok()) {
    return Refuse(result.status());
  }
  result->elapsed_ms = static_cast<uint64_t>((clock.Sample().boot - start).count());
  Print(*result);
  return result->whole() ? kExitOk : kExitFailed;
}

int RecoverOffline(const Config& config, bool accept_loss) {
  RaiseFileLimit();
  if (const Status status = Enter(config.data_dir); !status.ok()) {
    return Refuse(status);
  }
  const StatusOr<RecoverResult> result = accept_loss ? AcceptLoss(config) : ShowLoss(config);
  if (!result.ok()) {
    return Refuse(result.status());
  }
  if (!Print(*result)) {
    return kExitFailed;
  }
  DELAYD_CRASH_POINT("recover/told");
  if (const Status status = result->changed ? EndRecovery(config.data_dir) : OkStatus();
      !status.ok()) {
    return Refuse(status);
  }
  return result->whole() ? kExitOk : kExitFailed;
}

}  // namespace delayd

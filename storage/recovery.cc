#include "storage/recovery.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/crash_point.h"
#include "storage/batch_floor.h"
#include "storage/data_dir.h"
#include "storage/files.h"
#include "storage/log_order.h"
#include "storage/log_scan.h"
#include "storage/loss_account.h"
#include "storage/lost_batches.h"
#include "storage/manifest_edit.h"
#include "storage/numbered_files.h"
#include "storage/posix_error.h"

namespace delayd::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCopyDirectory = "damaged";

struct ScannedLog {
  std::string name;
  LogScan scan;
};

Status Damaged(const std::string& directory, const std::string& what, bool loss_can_be_accepted) {
  return DataLoss("data directory " + directory + " is damaged: " + what +
                      (loss_can_be_accepted
                           ? "; restore a backup, or give up what is lost with delayctl recover "
                             "--accept-loss"
                           : "; restore a backup"),
                  "damaged_store");
}

// `wrong` is what the logs or tables lack according to the MANIFEST. The table files that it does
// not know contain it: an open would remove them, and no log would show that they were lost.
Status ManifestWasCut(const std::string& directory,
                      const std::string& wrong,
                      bool opens_without,
                      const RecoveryReport& report) {
  std::string tables;
  for (const std::string& name : report.unknown_tables) {
    tables += (tables.empty() ? "" : ", ") + name;
  }
  return DataLoss(
      "data directory " + directory + " is damaged: " + wrong + ", and " + report.manifest +
          " does not know the table files " + tables + ": " + report.manifest +
          " was cut, another store was copied over this one, or they are left over from a start "
          "or a merge of tables that was killed; put the " +
          report.manifest + " that was here back, or restore a backup into an empty directory" +
          (opens_without ? ", or, to do without the jobs in those files, move them to "
                           "another directory and run delayctl recover again"
                         : ""),
      "damaged_store");
}

// False if the file cannot be examined: then the code that opens it reports why.
bool IsMissing(const std::string& path) {
  std::error_code error;
  return !fs::exists(path, error) && !error;
}

class Recovery {
 public:
  Recovery(const std::string& directory, LogRepair repair, RecoveryReport* report)
      : directory_(directory), repair_(repair), report_(report) {}

  Status RecoverManifest() {
    DELAYD_ASSIGN_OR_RETURN(const std::optional<std::string> current,
                            ReadFileIfThere(directory_ + "/CURRENT"));
    if (!current.has_value()) {
      return OkStatus();
    }
    const std::string name = current->substr(0, current->find('\n'));
    constexpr std::string_view kManifest = "MANIFEST-";
    if (!name.starts_with(kManifest) || current->size() != name.size() + 1 ||
        !NumberOf(name.substr(kManifest.size()), "").has_value()) {
      return CurrentLost(directory_, "names no MANIFEST");
    }
    if (IsMissing(directory_ + "/" + name)) {
      return Damaged(directory_, name + ", which CURRENT names, is missing", false);
    }
    report_->manifest = name;
    std::optional<uint64_t> last_sequence;
    std::set<uint64_t> tables;
    const auto read = [&](std::string_view bytes) {
      const ManifestEdit edit = ReadManifestEdit(bytes);
      report_->oldest_log_needed =
          std::max(report_->oldest_log_needed, edit.min_log_number_to_keep.value_or(0));
      last_sequence = std::max(last_sequence, edit.last_sequence);  // nullopt is the lowest
      for (const ManifestEdit::Log& log : edit.logs) {
        noted_[log.number] = log.bytes;
      }
      tables.insert(edit.tables.begin(), edit.tables.end());
    };
    DELAYD_ASSIGN_OR_RETURN(LogScan scan,
                            ScanLogFile(directory_ + "/" + name, {.visit_whole = read}));
    order_.SetTablesEnd(last_sequence);
    DELAYD_RETURN_IF_ERROR(FindUnknownTables(tables));
    if (!scan.damaged_at.has_value()) {
      return OkStatus();
    }
    // CURRENT names a MANIFEST only after its first record is durable.
    if (scan.records == 0 || scan.records_behind > 0) {
      return Damaged(directory_, Describe(name, scan), false);
    }
    torn_manifest_ = {.name = name, .scan = std::move(scan)};
    return OkStatus();
  }

  bool manifest_is_torn() const { return torn_manifest_.has_value(); }

  Status RecoverWal() {
    DELAYD_RETURN_IF_ERROR(ScanLogs());
    DELAYD_RETURN_IF_ERROR(JudgeLoss());
    return CutDamage();
  }

 private:
  Status ScanLogs() {
    DELAYD_ASSIGN_OR_RETURN(const auto logs, NeededLogs());
    for (const auto& [number, name] : logs) {
      DELAYD_ASSIGN_OR_RETURN(LogScan scan, Scan(name, !damaged_.empty()));
      NoteWhatIsMissing(name, noted_[number], &scan);
      if (scan.records > 0) {
        last_record_ = std::move(scan.last_whole);
        report_->logs_are_empty = false;
      }
      if (!damaged_.empty() || scan.damaged_at.has_value()) {
        lost_ += scan.records_behind;
        damaged_.push_back({.name = name, .scan = std::move(scan)});
      }
      if (order_.wrong().has_value()) {
        return NotItsLog(name, *order_.wrong());
      }
    }
    return OkStatus();
  }

  // Puts what was found into the report. Refuses damage that must not be cut.
  Status JudgeLoss() {
    if (!report_->missing.empty() && !report_->unknown_tables.empty()) {
      return ManifestWasCut(
          directory_, std::exchange(report_->missing, {}).front(), true, *report_);
    }
    // Then the unknown tables are left over from a flush or compaction that a kill cut short, and
    // the store lacks exactly what its logs lack.
    if (order_.meets_tables()) {
      report_->leftover_tables = std::exchange(report_->unknown_tables, {});
    }
    report_->lost_batches = std::max<uint64_t>(lost_, report_->missing.empty() ? 0 : 1);
    report_->holds_changes = order_.has_changes();
    const bool may_lose = repair_ == LogRepair::kAcceptLoss || repair_ == LogRepair::kShowLoss;
    if (report_->lost_batches > 0 && !may_lose) {
      const std::string what = report_->missing.empty()
                                   ? Describe(damaged_.front().name, damaged_.front().scan)
                                   : report_->missing.front();
      return Damaged(directory_,
                     what + "; " + std::to_string(lost_) + " acknowledged batches stand behind it",
                     true);
    }
    if (may_lose) {
      return AddEarlierLoss(directory_, report_);
    }
    return repair_ == LogRepair::kTornTails ? CheckEnd() : OkStatus();
  }

  // All copies are made first. Then the logs are cut from the newest back, so that after a crash in
  // between the damage is found again.
  Status CutDamage() {
    if (torn_manifest_.has_value()) {
      DELAYD_RETURN_IF_ERROR(CopyAside(*torn_manifest_));
    }
    for (const ScannedLog& log : damaged_) {
      DELAYD_RETURN_IF_ERROR(CopyAside(log));
    }
    if (repair_ == LogRepair::kAcceptLoss) {
      DELAYD_RETURN_IF_ERROR(BeginRecovery(directory_, *report_));
      report_->given_up = true;
      DELAYD_CRASH_POINT("recovery/begun");
    }
    if (torn_manifest_.has_value()) {
      DELAYD_RETURN_IF_ERROR(Cut(*torn_manifest_, 0));
    }
    for (auto log = damaged_.rbegin(); log != damaged_.rend(); ++log) {
      DELAYD_RETURN_IF_ERROR(Cut(*log, log->scan.records_behind));
    }
    std::ranges::reverse(report_->cuts);
    return OkStatus();
  }

  static std::string Describe(const std::string& name, const LogScan& scan) {
    return name + " makes no sense from byte " + std::to_string(scan.damaged_at.value_or(0)) +
           " of " + std::to_string(scan.bytes) + " on";
  }

  Status NotItsLog(const std::string& name, const std::string& what) const {
    if (!report_->unknown_tables.empty()) {
      return ManifestWasCut(directory_, name + " " + what, false, *report_);
    }
    return DataLoss("data directory " + directory_ + " is damaged: " + name + " " + what +
                        ", so it is a copy, or of another store or another time of this one, or a "
                        "log before it is missing; if it was put here, move it away, else restore "
                        "a backup, into an empty directory",
                    "damaged_store");
  }

  // A recovery that has begun checked this beforehand. Files left by a kill during its flush are
  // its own, and must not keep the next attempt from finishing.
  Status FindUnknownTables(const std::set<uint64_t>& known) {
    if (!RefuseUnfinished(directory_).ok()) {
      return OkStatus();
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            NumberedFiles(directory_, ".sst"));
    for (const std::string& name : names) {
      const uint64_t number = NumberOf(name, ".sst").value_or(0);
      if (number > report_->oldest_log_needed && !known.contains(number)) {
        report_->unknown_tables.push_back(name);
      }
    }
    return OkStatus();
  }

  // In the order of their numbers, including those that the MANIFEST lists but that are gone.
  StatusOr<std::map<uint64_t, std::string>> NeededLogs() {
    std::map<uint64_t, std::string> logs;
    for (const auto& [number, bytes] : noted_) {
      if (bytes > 0) {
        logs.emplace(number, LogName(number));
      }
    }
    DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, LogNames(directory_));
    for (const std::string& name : names) {
      logs[*NumberOf(name, ".log")] = name;
    }
    for (const auto& [number, name] : logs) {
      if (std::ranges::find(names, name) == names.end()) {
        report_->gone_logs.push_back(name);
      }
    }
    // These logs were flushed and left over: RocksDB no longer reads them, so whatever they hold is
    // no loss.
    const auto needed = logs.lower_bound(report_->oldest_log_needed);
    for (auto log = logs.begin(); log != needed; ++log) {
      report_->flushed_logs.push_back(log->second);
    }
    logs.erase(logs.begin(), needed);
    return logs;
  }

  // A log that was removed or cut between two batches is whole as far as it goes; RocksDB would
  // refuse it without saying what was lost.
  void NoteWhatIsMissing(const std::string& name, uint64_t noted, LogScan* scan) {
    if (scan->bytes < noted) {
      report_->missing.push_back(name + " has " + std::to_string(scan->bytes) + " of the " +
                                 std::to_string(noted) +
                                 " acknowledged bytes that the MANIFEST notes: it was removed or "
                                 "cut, or the MANIFEST was");
      scan->damaged_at = std::min(scan->damaged_at.value_or(scan->bytes), scan->bytes);
    }
  }

  // RocksDB opens a store whose newest log was cut between two batches, and moves the rest of that
  // log into tables. After that the whole log, if somebody still has it, could not be put back. So
  // the store is refused before.
  Status CheckEnd() {
    const std::optional<uint64_t> last = BatchNumberIn(last_record_);
    const std::optional<uint64_t> floor = BatchFloor(directory_).Read();
    if (!floor || !last || *last >= *floor) {
      return OkStatus();
    }
    report_->batch_number = *last;
    report_->batch_number_floor = std::max(report_->batch_number_floor, *floor);
    return EndsTooEarly(directory_, *report_);
  }

  // With `all_is_lost` the records before the damage are counted as lost too.
  StatusOr<LogScan> Scan(const std::string& name, bool all_is_lost) {
    const std::string path = directory_ + "/" + name;
    if (IsMissing(path)) {
      return LogScan{};  // listed in the MANIFEST, but gone
    }
    return ScanLogFile(
        path,
        {.visit_whole = [this](std::string_view record) { order_.Add(record); },
         .visit_lost = [this](std::string_view record) { NoteLostBatch(record, report_); },
         .all_is_lost = all_is_lost});
  }

  bool MayCut() const {
    return repair_ == LogRepair::kTornTails || repair_ == LogRepair::kAcceptLoss;
  }

  static std::string CopyOf(const ScannedLog& log) {
    return std::string(kCopyDirectory) + "/" + log.name + "." +
           std::to_string(log.scan.damaged_at.value_or(0));
  }

  // Copies what will be cut off; if batches are lost, the whole log.
  Status CopyAside(const ScannedLog& log) {
    const uint64_t offset = *log.scan.damaged_at;
    if (!MayCut() || offset == log.scan.bytes) {
      return OkStatus();
    }
    const std::string path = directory_ + "/" + log.name;
    const uint64_t copy_from = report_->lost_batches > 0 ? 0 : offset;
    DELAYD_RETURN_IF_ERROR(CopyDurably(path, copy_from, log.scan.bytes - copy_from, CopyOf(log)));
    DELAYD_CRASH_POINT("recovery/copied");
    // Check now, while there is nothing to undo.
    return ::access(path.c_str(), W_OK) == 0 ? OkStatus()
                                             : PosixError("nothing was changed: cannot cut", path);
  }

  Status Cut(const ScannedLog& log, uint64_t batches_lost) {
    const std::string path = directory_ + "/" + log.name;
    const uint64_t offset = *log.scan.damaged_at;
    if (offset == log.scan.bytes) {
      return OkStatus();
    }
    RecoveryReport::Cut cut{.file = log.name,
                            .offset = offset,
                            .bytes = log.scan.bytes - offset,
                            .batches_lost = batches_lost};
    if (MayCut()) {
      cut.copy = CopyOf(log);
      cut.copy_is_whole = report_->lost_batches > 0;
      if (::truncate(path.c_str(), static_cast<off_t>(offset)) != 0) {
        return PosixError("cannot cut", path);
      }
      DELAYD_CRASH_POINT("recovery/cut");
      DELAYD_RETURN_IF_ERROR(SyncFile(path));
    }
    report_->cuts.push_back(std::move(cut));
    return OkStatus();
  }

  // Copies `bytes` bytes, which must be everything in `from` from `offset` on, into `name` in the
  // data directory.
  Status CopyDurably(const std::string& from,
                     uint64_t offset,
                     uint64_t bytes,
                     const std::string& name) {
    const std::string directory = directory_ + "/" + std::string(kCopyDirectory);
    const std::string to = directory_ + "/" + name;
    std::error_code error;
    fs::create_directory(directory, error);
    if (error && !IsMissing(directory)) {
      return Unavailable("nothing was changed: cannot copy " + from + ": " + directory +
                             " is no directory; move it away",
                         "storage_io");
    }
    if (!error) {
      errno = 0;
      std::ifstream in(from, std::ios::binary);
      std::ofstream out(to, std::ios::binary | std::ios::trunc);
      in.seekg(static_cast<std::streamoff>(offset));
      out << in.rdbuf();
      // An unreadable part looks like the end of the file.
      const auto copied = static_cast<uint64_t>(out.tellp());
      out.close();
      if (!in || !out || copied != bytes) {
        error.assign(errno != 0 ? errno : EIO, std::generic_category());
      }
    }
    if (error) {
      std::error_code ignored;
      fs::remove(to, ignored);  // a partial copy would keep a full disk full
      errno = error.value();
      return PosixError("nothing was changed: cannot copy " + from + " to", to);
    }
    DELAYD_RETURN_IF_ERROR(SyncFile(to));
    DELAYD_RETURN_IF_ERROR(SyncFile(directory));
    return SyncFile(directory_);  // the directory entry may be new
  }

  const std::string& directory_;
  LogRepair repair_;
  RecoveryReport* report_;
  LogOrder order_;
  std::optional<ScannedLog> torn_manifest_;
  std::map<uint64_t, uint64_t> noted_;  // the bytes that each log must have, by log number
  std::vector<ScannedLog> damaged_;     // the first damaged log and every later one
  uint64_t lost_ = 0;                   // whole batches behind the damage
  std::string last_record_;             // the last whole record of all logs
};

}  // namespace

Status EndsTooEarly(const std::string& directory, const RecoveryReport& report) {
  const std::string what = "batch " + std::to_string(report.batch_number_floor) +
                           " had been acknowledged and the store ends at batch " +
                           std::to_string(report.batch_number);
  return report.unknown_tables.empty()
             ? Damaged(directory, what + ", so its newest log was cut or lost", true)
             : ManifestWasCut(directory, what, true, report);
}

// `cp -a BACKUP DIR` creates DIR/BACKUP if DIR still exists; created by root, it is readable by
// root alone.
void FindNestedStores(const std::string& directory, RecoveryReport* report) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    if (fs::exists(it->path() / "FORMAT", unreadable)) {
      report->nested_stores.push_back(it->path().string() +
                                      ", which is a store or a backup itself,");
    } else if (unreadable && it->path().filename() != "lost+found") {  // rightly root's own
      report->nested_stores.push_back(it->path().string() + ", which cannot be looked into (" +
                                      unreadable.message() + "),");
    }
  }
}

StatusOr<bool> ManifestIsTorn(const std::string& directory) {
  RecoveryReport unread;
  Recovery recovery(directory, LogRepair::kLookOnly, &unread);
  DELAYD_RETURN_IF_ERROR(recovery.RecoverManifest());
  return recovery.manifest_is_torn();
}

Status RecoverLogs(const std::string& directory, LogRepair repair, RecoveryReport* report) {
  if (repair == LogRepair::kLookOnly || repair == LogRepair::kTornTails) {
    DELAYD_RETURN_IF_ERROR(RefuseUnfinished(directory));
  }
  FindNestedStores(directory, report);
  Recovery recovery(directory, repair, report);
  DELAYD_RETURN_IF_ERROR(recovery.RecoverManifest());
  return recovery.RecoverWal();
}

}  // namespace delayd::storage

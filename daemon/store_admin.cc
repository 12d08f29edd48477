#include "daemon/store_admin.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/log.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"

namespace delayd {
namespace {

uint64_t MillisSince(BootTime start, const Clock& clock) {
  return static_cast<uint64_t>((clock.Sample().boot - start).count());
}

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  std::filesystem::directory_iterator file(directory, error);
  for (const std::filesystem::directory_iterator end; !error && file != end;
       file.increment(error)) {
    bytes += file->is_regular_file(error) ? file->file_size(error) : 0;
  }
  return bytes;
}

AdminAnswer Verify(const storage::JobStore& store,
                   const std::string& data_dir,
                   const Clock& clock,
                   const std::atomic<bool>& stop) {
  const BootTime start = clock.Sample().boot;
  DELAYD_ASSIGN_OR_RETURN(const auto snapshot, storage::SnapshotRocksJobStore(store));
  DELAYD_ASSIGN_OR_RETURN(
      const storage::VerifyReport report,
      storage::VerifyStore(*snapshot, [&stop](storage::Table, uint64_t) { return !stop.load(); }));
  protocol::VerifyResult result = VerifyResultOf(report);
  storage::RecoveryReport beside;
  storage::FindNestedStores(data_dir, &beside);
  result.notes = beside.Lines();
  result.elapsed_ms = MillisSince(start, clock);
  log::Info("verify has ended",
            {{"rows", result.rows},
             {"disagreements", result.disagreements},
             {"elapsed_ms", result.elapsed_ms}});
  return AdminResult(std::move(result));
}

AdminAnswer BackUp(storage::JobStore* store,
                   const Clock& clock,
                   const std::string& directory,
                   const std::atomic<bool>& stop) {
  const BootTime start = clock.Sample().boot;
  const Status status =
      storage::BackUpRocksJobStore(store, directory, [&stop] { return !stop.load(); });
  if (!status.ok()) {
    log::Warn("backup failed", {{"code", status.reason()}, {"detail", status.message()}});
    return status;
  }
  protocol::BackupResult result{.dir = directory, .bytes = BytesIn(directory)};
  result.elapsed_ms = MillisSince(start, clock);
  log::Info("backup has ended",
            {{"dir", directory}, {"bytes", result.bytes}, {"elapsed_ms", result.elapsed_ms}});
  return AdminResult(std::move(result));
}

}  // namespace

AdminFunction MakeStoreAdmin(storage::JobStore* store, std::string data_dir, const Clock* clock) {
  return [store, data_dir = std::move(data_dir), clock](const AdminCommand& command,
                                                        const std::atomic<bool>& stop) {
    if (const auto* backup = std::get_if<BackUpCommand>(&command)) {
      return BackUp(store, *clock, backup->directory, stop);
    }
    return Verify(*store, data_dir, *clock, stop);
  };
}

protocol::VerifyResult VerifyResultOf(const storage::VerifyReport& report) {
  protocol::VerifyResult result{.rows = report.rows,
                                .pending = report.pending,
                                .dead = report.dead,
                                .disagreements = report.disagreement_count};
  for (const storage::Disagreement& disagreement : report.disagreements) {
    result.findings.push_back({.table = std::string(storage::TableName(disagreement.table)),
                               .what = disagreement.what,
                               .repairable = disagreement.repairable});
  }
  return result;
}

}  // namespace delayd

// storage/recovery.h — what is done to the logs of a store before RocksDB opens it, and the account
// of it.
//
// A torn tail (no whole record behind it) is an unanswered write: it is copied aside, cut, and
// reported. Anything else is damage to acknowledged data: refused, with file and offset, unless the
// operator accepted the loss. Then RECOVERY (storage/loss_account.h) stands in the directory from
// before the first cut until EndRecovery.
//
// Errors:  kDataLoss "damaged_store".
// Threads: one, with the directory locked and RocksDB not yet open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "storage/job_store.h"

namespace delayd::storage {

// What an open found and did; empty when the store was whole.
struct RecoveryReport {
  struct Cut {
    std::string file;           // "000012.log"
    uint64_t offset = 0;        // what stood from here on is gone
    uint64_t bytes = 0;         // so many
    uint64_t batches_lost = 0;  // whole, acknowledged ones among them; 0 for a torn tail
    // Of what was cut off, or of the file as it was; empty when nothing was cut off.
    std::string copy;
    bool copy_is_whole = false;
  };

  // A recovery before this one that was cut short; what it has given up is in here too.
  enum class Begun : uint8_t { kNo, kKnown, kUnreadable };

  bool made_store = false;  // there was none
  std::vector<Cut> cuts;
  bool given_up = false;               // by this recovery: what was lost stays so
  std::vector<std::string> missing;    // a sentence for each log that is gone or too short
  std::vector<std::string> gone_logs;  // names of those that the MANIFEST notes, needed or not
  Begun begun_before = Begun::kNo;
  // Jobs that the lost batches wrote, as far as they can be read (the damaged one never can); the
  // first kLostJobsMax.
  std::vector<JobId> lost_jobs;
  // Jobs that the lost batches ended (acked or cancelled); the first kLostJobsMax.
  std::vector<JobId> ended_jobs;
  // Whole ones, or 1 where only `missing` tells; the damage before them has cost at least one more.
  uint64_t lost_batches = 0;
  // One above the largest id that the lost batches wrote or reserved; 0: none.
  uint64_t lost_ids_end = 0;
  std::string manifest;  // that CURRENT names; empty: there is none yet
  // Table files that are there and that it does not know, where the MANIFEST may have been cut and
  // they may hold what no log does; an open removes them.
  std::vector<std::string> unknown_tables;
  // The same where its logs go on where it ends: left over from a flush that was cut short, unless
  // tables that it knows are missing.
  std::vector<std::string> leftover_tables;
  // By the MANIFEST: every log below this number has been flushed.
  uint64_t oldest_log_needed = 0;
  std::vector<std::string> flushed_logs;  // that are still there
  // Directories in this one that are stores themselves, or that may not be looked into, each with
  // what it is: a restore that missed its place.
  std::vector<std::string> nested_stores;
  bool holds_changes = false;  // any, in its tables or its logs
  bool logs_are_empty = true;  // no whole record is in those that are needed
  // A log that RocksDB missed and that nothing needs: a note of it that should have been erased.
  std::optional<uint64_t> stale_log_note;
  uint64_t batch_number = 0;        // of the last batch that is there
  bool floor_unreadable = false;    // of a store that was complete
  uint64_t batch_number_floor = 0;  // the store had reached at least this one

  // One line per finding, for the log.
  std::vector<std::string> Lines() const;
};

inline constexpr size_t kLostJobsMax = 10'000;

// What the loss means for each job, by what is left in the store.
struct LossByJob {
  std::vector<JobId> gone;     // enqueued in what was lost: they are not there any more
  std::vector<JobId> older;    // changed in what was lost: they are as they were before
  std::vector<JobId> revived;  // acked or cancelled in what was lost: they are there again
  uint64_t unread = 0;         // in no list: their rows cannot be read
};

// `store` is the store without what was lost. Each job stands in one list at most, by id.
StatusOr<LossByJob> SortLostJobs(const RecoveryReport& report, const JobReader& store);

enum class LogRepair : uint8_t {
  kLookOnly,    // a torn tail is reported, and left alone
  kShowLoss,    // as kAcceptLoss would do it, and nothing is changed
  kTornTails,   // and cut
  kAcceptLoss,  // and so is damage to acknowledged batches, with all that stands behind it
};

// That the store is behind its floor, by the report's numbers. Where there are table files that
// the MANIFEST does not know, they may hold what is missing, and no recovery may go on.
Status EndsTooEarly(const std::string& directory, const RecoveryReport& report);

// That its last record was cut short: an open goes on without it.
StatusOr<bool> ManifestIsTorn(const std::string& directory);

// Scans every log in `directory`, and repairs as told. kTornTails changes nothing where the logs
// end before the floor.
Status RecoverLogs(const std::string& directory, LogRepair repair, RecoveryReport* report);

// Into report->nested_stores; also while a store is open.
void FindNestedStores(const std::string& directory, RecoveryReport* report);

}  // namespace delayd::storage

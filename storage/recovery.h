// storage/recovery.h — examines and repairs the logs of a store before RocksDB opens it, and
// reports what was found and done.
//
// A torn tail (no whole record behind it) is an unanswered write: it is copied aside, cut off, and
// reported. Anything else is damage to acknowledged data: the open is refused, with file and
// offset, unless the operator has accepted the loss. In that case RECOVERY (storage/loss_account.h)
// exists in the directory from before the first cut until EndRecovery.
//
// Errors:  kDataLoss "damaged_store".
// Threads: one, with the directory locked and RocksDB not yet open.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "storage/job_store.h"

namespace delayd::storage {

// What an open found and did; empty if the store was whole.
struct RecoveryReport {
  struct Cut {
    std::string file;           // "000012.log"
    uint64_t offset = 0;        // everything from here on is gone
    uint64_t bytes = 0;         // how many bytes those are
    uint64_t batches_lost = 0;  // whole, acknowledged batches among them; 0 for a torn tail
    // A copy of the part cut off, or of the file as it was; empty if nothing was cut off.
    std::string copy;
    bool copy_is_whole = false;
  };

  // An earlier recovery that was cut short; what it gave up is included here.
  enum class Begun : uint8_t { kNo, kKnown, kUnreadable };

  bool made_store = false;  // there was no store before
  std::vector<Cut> cuts;
  bool given_up = false;               // by this recovery: what was lost stays lost
  std::vector<std::string> missing;    // a sentence for each log that is gone or too short
  std::vector<std::string> gone_logs;  // names of all those that the MANIFEST lists, needed or not
  Begun begun_before = Begun::kNo;
  // Jobs that the lost batches wrote, as far as they can be read (the damaged batch never can); the
  // first kLostJobsMax.
  std::set<JobId> lost_jobs;
  // Jobs that the lost batches ended (acked or cancelled); the first kLostJobsMax.
  std::set<JobId> ended_jobs;
  // Whole batches, or 1 if only `missing` shows a loss; the damage before them cost at least one
  // more.
  uint64_t lost_batches = 0;
  // One above the largest id that the lost batches wrote or reserved; 0: none.
  uint64_t lost_ids_end = 0;
  std::string manifest;  // the one that CURRENT names; empty: there is none yet
  // Table files that exist but that the MANIFEST does not know, listed if it may have been cut and
  // they may hold what no log does. An open removes them.
  std::vector<std::string> unknown_tables;
  // Such files where the logs continue where the MANIFEST ends: they are left over from a flush
  // that was cut short, unless tables that it knows are missing.
  std::vector<std::string> leftover_tables;
  // According to the MANIFEST, every log below this number has been flushed.
  uint64_t oldest_log_needed = 0;
  std::vector<std::string> flushed_logs;  // those that still exist
  // Directories in this one that are stores themselves, or that cannot be examined, each with what
  // it is: the result of a restore into the wrong place.
  std::vector<std::string> nested_stores;
  bool holds_changes = false;  // there are any, in tables or logs
  bool logs_are_empty = true;  // the needed logs hold no whole record
  // A log that RocksDB missed and that nothing needs: its entry in the MANIFEST should have been
  // erased.
  std::optional<uint64_t> stale_log_note;
  uint64_t batch_number = 0;        // of the last batch that is present
  bool floor_unreadable = false;    // and the store was complete
  uint64_t batch_number_floor = 0;  // the store had reached at least this one

  // One line per finding, for the daemon's log.
  std::vector<std::string> Lines() const;
};

inline constexpr size_t kLostJobsMax = 10'000;

// What the loss means for each job, by what is left in the store.
struct LossByJob {
  std::vector<JobId> gone;     // enqueued in a lost batch: these jobs no longer exist
  std::vector<JobId> older;    // changed in a lost batch: these jobs are as they were before
  std::vector<JobId> revived;  // acked or cancelled in a lost batch: these jobs exist again
  uint64_t unread = 0;         // in no list: their rows cannot be read
};

// `store` is the store without what was lost. Each job appears in at most one list, sorted by id.
StatusOr<LossByJob> SortLostJobs(const RecoveryReport& report, const JobReader& store);

enum class LogRepair : uint8_t {
  kLookOnly,    // a torn tail is reported but left alone
  kShowLoss,    // shows what kAcceptLoss would leave, and changes nothing
  kTornTails,   // a torn tail is cut off as well
  kAcceptLoss,  // and so is damage to acknowledged batches, with everything behind it
};

// The error of a store that is behind its floor, by the report's numbers. If there are table files
// that the MANIFEST does not know, they may hold what is missing, and no recovery may proceed.
Status EndsTooEarly(const std::string& directory, const RecoveryReport& report);

// Was the MANIFEST's last record cut short? An open goes on without that record.
StatusOr<bool> ManifestIsTorn(const std::string& directory);

// Scans every log in `directory` and repairs as told. kTornTails changes nothing if the logs end
// before the floor.
Status RecoverLogs(const std::string& directory, LogRepair repair, RecoveryReport* report);

// Fills report->nested_stores; works while a store is open too.
void FindNestedStores(const std::string& directory, RecoveryReport* report);

}  // namespace delayd::storage

// storage/recovery.h — what is done to the logs of a store before RocksDB opens it, and the account
// of it.
//
// A torn tail (no whole record behind it) is an unanswered write: the log is copied aside, cut, and
// reported. Anything else is damage to acknowledged data: refused, with file and offset, unless the
// operator accepted the loss.
//
// Errors:  kDataLoss "damaged_store".
// Threads: one, with the directory locked and RocksDB not yet open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/job.h"
#include "base/status.h"

namespace delayd::storage {

// What an open found and did; empty when the store was whole.
struct RecoveryReport {
  struct Cut {
    std::string file;           // "000012.log"
    uint64_t offset = 0;        // what stood from here on is gone
    uint64_t bytes = 0;         // so many
    uint64_t batches_lost = 0;  // whole, acknowledged ones among them; 0 for a torn tail
    std::string copy;           // the file as it was, or empty when nothing was cut off
  };

  std::vector<Cut> cuts;
  // Jobs that the lost batches wrote, as far as they can be read; the first kLostJobsMax.
  std::vector<JobId> lost_jobs;
  uint64_t lost_batches = 0;
  uint64_t batch_number = 0;        // of the last batch that is there
  uint64_t batch_number_floor = 0;  // the store had reached at least this one

  // One line per finding, for the log.
  std::vector<std::string> Lines() const;
};

inline constexpr size_t kLostJobsMax = 10'000;

// Scans every log in `directory`, and repairs as above.
Status RecoverLogs(const std::string& directory, bool accept_loss, RecoveryReport* report);

}  // namespace delayd::storage

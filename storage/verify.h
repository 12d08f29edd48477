// storage/verify.h — do the tables agree with each other? Every disagreement is named.
//
//   every record is whole (its checksum), and every key has its table's form
//   a job in timers or dead     <-> its index row
//   a job in timers             <-> its by_queue row
//   a job with a payload in big <-> that payload, of that size
//   a job with a client key     <-> the live row of that key, with its id
//   a finished key              ->  its row in done, by which it will be forgotten
//   the counts of each queue    =   its rows
//   no row below the low-water mark of its table, no id that was not reserved, no unknown queue
//
// Both sides of a pair are scanned once and compared by a sum of hashes; only when the sums differ
// are the rows looked up one by one, to name them.
//
// Errors:  a Status only when the store cannot be read at all; damage and disagreement are results.
// Threads: any, on a reader that does not change meanwhile: a store nobody writes to, or a
//          snapshot.
// Cost:    one scan of every table; memory for the queues and the disagreements.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/batch.h"
#include "storage/job_store.h"

namespace delayd::storage {

struct Disagreement {
  Table table = Table::kMeta;  // of the row that is wrong or missing
  std::string what;            // "job 42: its index row is missing"
  bool repairable = false;     // it can be derived from other tables
};

struct VerifyReport {
  uint64_t rows = 0;
  uint64_t pending = 0;
  uint64_t dead = 0;
  // All of them are counted; the first kDisagreementsMax are named.
  uint64_t disagreement_count = 0;
  std::vector<Disagreement> disagreements;
  // Why rows cannot be read, each reason once: table files are damaged. Among those above, too.
  std::set<std::string, std::less<>> unread;
  // Committed, it puts right the first kRepairsMax of what is repairable, named or not.
  Batch repair;

  bool ok() const { return disagreement_count == 0; }
};

inline constexpr size_t kDisagreementsMax = 1000;
// More than are named: each round of a repair scans all tables. Some 5 MB.
inline constexpr size_t kRepairsMax = 10'000;

// Called every some thousand rows with the table at hand and the rows read so far, those that are
// read once more to name them too. False ends the work with kUnavailable "stopped".
using VerifyProgress = std::function<bool(Table table, uint64_t rows)>;

StatusOr<VerifyReport> VerifyStore(const JobReader& store,
                                   const VerifyProgress& progress = nullptr);

// How many rows VerifyStore will read, by the counts of the queues: for a progress bar. An estimate
// even in a whole store, 0 when the counts cannot be read.
uint64_t EstimateRows(const JobReader& store);

}  // namespace delayd::storage

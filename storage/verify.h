// storage/verify.h — checks that the tables agree with each other, and names every disagreement.
//
//   every record is whole (its checksum), and every key has its table's form
//   a job in timers or dead     <-> its index row
//   a job in timers             <-> its by_queue row
//   a job with a payload in big <-> that payload, of that size
//   a job with a client key     <-> the live row of that key, with its id
//  a finished key              ->  its row in done, through which it will be forgotten
//   the counts of each queue    =   its rows
//   no row below the low-water mark of its table, no id that was not reserved, no unknown queue
//
// Both sides of a pair are scanned once and compared by a sum of hashes. Only if the sums differ
// are the rows looked up one by one, to name the wrong ones.
//
// Errors:  a Status only if the store cannot be read at all; damage and disagreements are results.
// Threads: any, on a reader that does not change meanwhile: a store that nobody writes to, or a
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
  // All disagreements are counted; the first kDisagreementsMax are named.
  uint64_t disagreement_count = 0;
  std::vector<Disagreement> disagreements;
  // Why rows cannot be read (damaged table files), each reason once. They are also among those
  // above.
  std::set<std::string, std::less<>> unread;
  // Committing this batch repairs the first kRepairsMax repairable disagreements, named or not.
  Batch repair;

  bool ok() const { return disagreement_count == 0; }
};

inline constexpr size_t kDisagreementsMax = 1000;
// Many more than are named, since each round of a repair scans all tables, and a lost log may have
// held some hundred thousand rows. Some 10 MB, or 50 with long keys.
inline constexpr size_t kRepairsMax = 100'000;

// Called with each row, since one may be large or slow to look up: the current table and the number
// of rows read so far, including rows read a second time to name disagreements. False ends the work
// with kUnavailable "stopped".
using VerifyProgress = std::function<bool(Table table, uint64_t rows)>;

StatusOr<VerifyReport> VerifyStore(const JobReader& store,
                                   const VerifyProgress& progress = nullptr);

// How many rows VerifyStore will read, according to the counts of the queues: for a progress bar.
// An estimate even for a whole store; 0 if the counts cannot be read.
uint64_t EstimateRows(const JobReader& store);

}  // namespace delayd::storage

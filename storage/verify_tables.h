// storage/verify_tables.h — what the two halves of VerifyStore share. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/verify.h"

namespace delayd::storage {

// A number that stands for a multiset of rows: equal multisets have equal tallies, others almost
// certainly do not.
class Tally {
 public:
  void Add(std::string_view row);

  friend bool operator==(const Tally&, const Tally&) = default;

 private:
  uint64_t rows_ = 0;
  uint64_t sum_ = 0;
};

// One row of timers or dead.
struct JobRow {
  Table table = Table::kTimers;
  std::string key;
  WallTime at;  // key_due, or when it died
  JobRecord record;

  IndexRecord Place() const;
};

StatusOr<JobRow> DecodeJobRow(Table table, std::string_view key, std::string_view value);

// Where the index row of a finished job must lead; `parts` come from its key in done.
IndexRecord PlaceOfDone(const TimerKeyParts& parts, QueueId queue);

std::string JobName(JobId id);

// Collects the findings for the report.
class Findings {
 public:
  explicit Findings(VerifyProgress progress) : progress_(std::move(progress)) {}

  // Counts a row. False: the caller's progress function wants to stop.
  bool Row(Table table);

  bool stopped() const { return stopped_; }

  void Add(Table table, std::string what);
  // Also adds the one operation that repairs it.
  void AddRepairable(Table table, std::string what, std::string_view key, std::string_view value);
  void AddSuperfluous(Table table, std::string what, std::string_view key);
  // Damage below the level of rows. Every read of a damaged block fails in the same way, so it is
  // named once.
  void AddUnread(Table table, const Status& status);

  // Independent of how many findings are named: what cannot be repaired comes back in every round.
  bool MayRepair() const { return report.repair.size() < kRepairsMax; }

  VerifyReport report;

 private:
  void Note(Table table, std::string what, bool repairable);

  VerifyProgress progress_;
  bool stopped_ = false;
};

// Looks rows up one by one, to name the ones that make two tallies differ.
class PairCheck {
 public:
  // If not all job rows could be read, a job that is not found may still exist.
  PairCheck(const JobReader& store, bool all_jobs_read, Findings* findings)
      : store_(store), all_jobs_read_(all_jobs_read), findings_(findings) {}

  // From the job to the row that should be there.
  void IndexOfJob(const JobRow& job);
  void IndexOfDone(const TimerKeyParts& parts, QueueId queue);
  void ByQueueOfJob(const JobRow& job);
  void BigOfJob(const JobRow& job);
  void KeyOfJob(const JobRow& job);

  // From the row to the job that should be there.
  void JobOfIndex(std::string_view key, std::string_view value);
  void JobOfByQueue(std::string_view key);
  void JobOfBig(std::string_view key);
  void JobOfKey(std::string_view key, const KeyRecord& record);

 private:
  enum class Row : uint8_t { kThere, kMissing, kUnread };

  // Only a missing row may be put back, or have its counterpart deleted. An unreadable row is named
  // here.
  Row Look(Table table, std::string_view key, std::string* value) const;

  struct Found {
    std::optional<JobRow> job;
    bool unread = false;                             // nothing can be said about the job
    bool missing = false;                            // there is no row where it should be
    std::optional<IndexRecord> done = std::nullopt;  // the index says that the job has finished
  };

  // The job that the index leads to, if it does and the job is whole.
  Found Find(JobId id) const;
  void RebuildIndex(JobId id, std::string what, std::string_view key, std::string_view should_be);
  void JobOfDoneIndex(JobId id, const IndexRecord& place, std::string_view key);
  void KeyOfDone(std::string_view key, const KeyRecord& record, const IndexRecord& place);
  bool IsRecordMissing(JobId id, const IndexRecord& place);

  const JobReader& store_;
  bool all_jobs_read_;
  Findings* findings_;
  // Jobs and ends that exist and that the index will lead to after the repair: none of their rows
  // is superfluous just because the index does not lead there yet.
  std::set<JobId> found_again_;
};

}  // namespace delayd::storage

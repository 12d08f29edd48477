// protocol/store_json.h — verify, recover and backup as JSON, in both directions.
//
// What:    the answers of POST /v1/admin/verify and /v1/admin/backup, and the lines that delayd's
//          offline modes write for delayctl: any number of {"progress": ...}, then one of
//          {"verify": ...}, {"recover": ...} or a problem (protocol/problem.h).
// Units:   rows, bytes, milliseconds.
// Errors:  kInvalidArgument naming the member; unknown members are skipped in answers, so that a
//          newer daemon can say more, and refused in requests.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/job.h"
#include "base/status.h"

namespace delayd::protocol {

struct StoreFinding {
  std::string table;
  std::string what;         // "job 42: its index row is missing"
  bool repairable = false;  // it can be derived from other tables
};

struct VerifyResult {
  uint64_t rows = 0;
  uint64_t pending = 0;
  uint64_t dead = 0;
  uint64_t disagreements = 0;          // all of them
  std::vector<StoreFinding> findings;  // the first ones
  uint64_t repaired = 0;               // offline only
  std::vector<std::string> notes;      // about the directory; offline about its logs, too
  uint64_t elapsed_ms = 0;

  // Nothing is wrong, or all of it was repaired.
  bool whole() const { return disagreements == repaired; }
};

// What damage to the logs has cost, or would cost.
struct RecoverResult {
  // Acknowledged changes are lost, or an earlier recovery that was cut short keeps the store shut.
  bool damaged = false;
  bool changed = false;  // the loss was accepted
  // False: the store does not open even after the loss, or no daemon would start on it. Then
  // nothing is changed.
  bool opens = true;
  bool unread = false;        // a table file is damaged, which no recovery can mend
  uint64_t still_wrong = 0;   // places where the tables disagree after the repair
  uint64_t lost_batches = 0;  // the readable ones; at least one more cannot be read
  // Whether the lists below name every job. They do only where nothing is damaged, since a damaged
  // batch cannot be read.
  bool lists_complete = true;
  bool lists_capped = false;   // there are more jobs than a list may name
  std::vector<JobId> gone;     // enqueued in a lost batch: no longer there
  std::vector<JobId> older;    // changed in a lost batch: back to their earlier state
  std::vector<JobId> revived;  // acked or cancelled in a lost batch: there again
  std::vector<std::string> notes;

  // The store can be used; any loss was accepted.
  bool whole() const { return opens && !unread && (!damaged || changed); }
};

struct BackupRequest {
  std::string dir;
};

struct BackupResult {
  std::string dir;
  uint64_t bytes = 0;
  uint64_t elapsed_ms = 0;
};

struct StoreProgress {
  std::string table;
  uint64_t rows = 0;
  uint64_t rows_total = 0;  // an estimate; 0: unknown
};

std::string VerifyResultToJson(const VerifyResult& result);
StatusOr<VerifyResult> ParseVerifyResult(std::string_view json);
std::string RecoverResultToJson(const RecoverResult& result);
StatusOr<RecoverResult> ParseRecoverResult(std::string_view json);
std::string BackupRequestToJson(const BackupRequest& request);
StatusOr<BackupRequest> ParseBackupRequest(std::string_view json);
std::string BackupResultToJson(const BackupResult& result);
StatusOr<BackupResult> ParseBackupResult(std::string_view json);

// One line of an offline mode. A problem line is read as the Status that it stands for.
using StoreLine = std::variant<StoreProgress, VerifyResult, RecoverResult, Status>;
std::string StoreLineToJson(const StoreLine& line);
StatusOr<StoreLine> ParseStoreLine(std::string_view json);

}  // namespace delayd::protocol

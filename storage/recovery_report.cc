// What a recovery reports: the fate of each job, and lines for the log.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/keys.h"
#include "storage/record.h"
#include "storage/record_row.h"
#include "storage/recovery.h"

namespace delayd::storage {
namespace {

// Finds the row that the job's index row leads to; kNotFound if there is none or the job has
// finished.
Status FindRecord(JobId id, const JobReader& store) {
  const std::string key = IndexKey(id);
  std::string value;
  DELAYD_RETURN_IF_ERROR(store.Get(Table::kIndex, key, &value));
  DELAYD_ASSIGN_OR_RETURN(const IndexRecord place, DecodeIndexRecord(key, value));
  if (place.place == IndexRecord::Place::kDone) {
    return NotFound("it has finished");
  }
  const RecordRow row = RowOfRecord(place, id);
  return store.Get(row.table, row.key, &value);
}

// Nothing if that cannot be read.
StatusOr<std::optional<bool>> IsThere(JobId id, const JobReader& store) {
  const Status found = FindRecord(id, store);
  if (found.code() == StatusCode::kDataLoss) {
    return std::optional<bool>();
  }
  if (found.code() != StatusCode::kNotFound) {
    DELAYD_RETURN_IF_ERROR(found);
  }
  return std::optional(found.ok());
}

}  // namespace

StatusOr<LossByJob> SortLostJobs(const RecoveryReport& report, const JobReader& store) {
  LossByJob loss;
  for (const JobId id : report.ended_jobs) {
    DELAYD_ASSIGN_OR_RETURN(const std::optional<bool> there, IsThere(id, store));
    if (!there.has_value()) {
      ++loss.unread;
    } else if (*there) {
      loss.revived.push_back(id);
    }  // else it was also enqueued in a lost batch: nothing of it is left, and nothing is missed
  }
  for (const JobId id : report.lost_jobs) {
    if (!report.ended_jobs.contains(id)) {
      DELAYD_ASSIGN_OR_RETURN(const std::optional<bool> there, IsThere(id, store));
      if (!there.has_value()) {
        ++loss.unread;
      } else {
        (*there ? loss.older : loss.gone).push_back(id);
      }
    }
  }
  return loss;
}

std::vector<std::string> RecoveryReport::Lines() const {
  std::vector<std::string> lines;
  if (begun_before != Begun::kNo) {
    lines.push_back(std::string("an earlier recovery was cut short; ") +
                    (begun_before == Begun::kKnown ? "what it gave up is told here too"
                                                   : "what it gave up cannot be read any more"));
  }
  lines.insert(lines.end(), missing.begin(), missing.end());
  for (const Cut& cut : cuts) {
    std::string line = cut.file + (cut.copy.empty() ? ": would cut " : ": cut ") +
                       std::to_string(cut.bytes) + " bytes at byte " + std::to_string(cut.offset);
    if (cut.batches_lost > 0) {
      line += ", with " + std::to_string(cut.batches_lost) + " acknowledged batches";
    } else if (lost_batches > 0) {  // in a later log
      line += ", in which no batch is whole";
    } else if (batch_number < batch_number_floor) {  // no power cut: the log was cut
      line += ", what is left of a batch";
    } else {
      line += ", the unanswered write that the last stop tore";
    }
    if (cut.copy.empty()) {
      lines.push_back(line + "; left as it is");
    } else {
      lines.push_back(line + (cut.copy_is_whole ? "; the file as it was is " : "; they are in ") +
                      cut.copy);
    }
  }
  if (lost_batches > 0) {
    std::string line =
        std::string(given_up || begun_before != Begun::kNo ? "lost by the operator's word: "
                                                           : "would be lost: ") +
        std::to_string(lost_batches) + " acknowledged batches, which wrote " +
        std::to_string(lost_jobs.size()) + (lost_jobs.size() == kLostJobsMax ? " or more" : "") +
        " jobs, and at least one batch that cannot be read";
    lines.push_back(std::move(line));
  }
  if (stale_log_note.has_value()) {
    lines.push_back("the MANIFEST noted log " + std::to_string(*stale_log_note) +
                    ", which had been flushed and removed; the note was erased, nothing is lost");
  }
  if (floor_unreadable) {
    lines.emplace_back(
        "BATCH is missing or damaged: whether the newest log is there to its end cannot be told");
  }
  for (const std::string& nested : nested_stores) {
    lines.push_back(nested +
                    " lies in the data directory and is not used: if it was to take the place of "
                    "this one, stop the daemon, move it out, empty the data directory and move "
                    "what is in it there");
  }
  if (batch_number < batch_number_floor) {
    lines.push_back("the store had reached batch " + std::to_string(batch_number_floor) +
                    " at least and is at batch " + std::to_string(batch_number));
  }
  return lines;
}

}  // namespace delayd::storage

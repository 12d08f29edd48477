// What the stopped store holds, against what was answered before: I14 and I17.
#include "tests/checker/watcher.h"

namespace delayd::checker {
namespace {

using Rows = boost::unordered_flat_map<uint64_t, const JobEntry*>;

Rows ById(const std::vector<JobEntry>& jobs) {
  Rows rows;
  for (const JobEntry& job : jobs) {
    rows.emplace(job.id, &job);
  }
  return rows;
}

bool IsDead(const JobEntry& job) {
  return job.state == "dead";
}

}  // namespace

void Watcher::NoteAnswer(const Event& answer) {
  if (answer.seq > answered_seq_) {
    answered_seq_ = answer.seq;
    answered_line_ = answer.line;
  }
}

void Watcher::Disk(const Event& event) {
  for (const std::string& fault : event.faults) {
    Fail("I14", event.line, fault);
  }
  if (event.seq < answered_seq_) {
    Fail("I17",
         event.line,
         "the last commit on disk is " + std::to_string(event.seq) + ", and the answer of line " +
             std::to_string(answered_line_) + " rests on " + std::to_string(answered_seq_));
  }
  for (const JobEntry& row : event.jobs) {
    Surface(row.id, row, event.line);
  }
  const Rows rows = ById(event.jobs);
  for (const auto& [id, job] : jobs_) {
    const auto row = rows.find(id);
    CheckOnDisk(id, job, row == rows.end() ? nullptr : row->second, event.line);
  }
  CompareWithFinal(event);
}

// What was answered is on disk, whatever ended the daemon. `row`: null when there is none.
void Watcher::CheckOnDisk(uint64_t id, const WatchedJob& job, const JobEntry* row, uint64_t line) {
  const bool may_have_ended = job.ack.asked || job.cancel.asked;
  if (row == nullptr) {
    if (job.known && !may_have_ended) {
      Fail("I17", line, Name(id) + " was acknowledged and is not on disk");
    }
    return;
  }
  if (job.ack.done || job.cancel.done) {
    Fail("I17",
         line,
         Name(id) + (job.ack.done ? " was acked" : " was cancelled") + " and is still on disk");
  } else if (job.bury.done && !IsDead(*row)) {
    Fail("I17", line, Name(id) + " was buried and is not among the dead on disk");
  } else if (job.revived && job.max_attempts == 0 && IsDead(*row)) {
    Fail("I17", line, Name(id) + " was kicked and is among the dead on disk");
  }
}

// Nobody has asked for anything in between: the daemon's list is the store's.
void Watcher::CompareWithFinal(const Event& event) {
  if (!listed_) {
    return;
  }
  const Rows listed = ById(*listed_);
  const Rows stored = ById(event.jobs);
  for (const auto& [id, job] : listed) {
    const auto row = stored.find(id);
    if (row == stored.end()) {
      Fail("I14", event.line, Name(id) + " was listed and is not on disk");
    } else if (IsDead(*job) != IsDead(*row->second)) {
      Fail("I14",
           event.line,
           Name(id) + " was listed as " + job->state + " and is stored as " + row->second->state);
    }
  }
  for (const auto& [id, row] : stored) {
    if (!listed.contains(id)) {
      Fail("I14", event.line, Name(id) + " is on disk and was not listed");
    }
  }
}

}  // namespace delayd::checker

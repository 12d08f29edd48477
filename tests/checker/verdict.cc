// What can only be said at the end, when everything that was due has been worked on.
#include <algorithm>
#include <set>

#include "tests/checker/watcher.h"

namespace delayd::checker {

void Watcher::Final(const Event& event) {
  final_ = true;
  for (const JobEntry& entry : event.jobs) {
    WatchedJob& job = *Surface(entry.id, entry, event.line);
    job.final_state = entry.state;
    const bool is_due =
        entry.state == "ready" || (entry.state == "scheduled" && entry.due != kNotSet &&
                                   event.w != kNotSet && entry.due < event.w);
    if (is_due && job.deliveries == 0) {
      Fail("I3", event.line, Name(entry.id) + " is due and was never handed out");
    }
    if (job.cancel.done) {
      Fail("I5", event.line, Name(entry.id) + " is still there after it was cancelled");
    }
    if (job.ack.done) {
      Fail("I8", event.line, Name(entry.id) + " is still there after it was acked");
    }
  }
}

// A batch whose outcome nobody knows is there as a whole or not at all; a refused one is not there.
void Watcher::CheckBatches() {
  std::set<std::string> seen;
  for (const auto& [id, job] : jobs_) {
    seen.insert(job.payload);
  }
  for (const Request& request : requests_) {
    if (request.event.op != Op::kEnqueue || request.event.jobs.empty() ||
        request.answer == Phase::kOk) {
      continue;
    }
    const auto there = static_cast<size_t>(std::ranges::count_if(
        request.event.jobs, [&seen](const JobEntry& job) { return seen.contains(job.payload); }));
    const bool sent_once = std::ranges::all_of(request.event.jobs, [&](const JobEntry& job) {
      const Senders& senders = by_payload_.at(job.payload);
      return senders.first == senders.last;
    });
    if (request.answer == Phase::kFail && there > 0 && sent_once) {
      Fail("I12", request.event.line, "a batch was refused and is there all the same");
    } else if (request.answer != Phase::kFail && there > 0 && there < request.event.jobs.size()) {
      Fail("I12",
           request.event.line,
           std::to_string(there) + " of the " + std::to_string(request.event.jobs.size()) +
               " jobs of a batch are there");
    }
  }
}

void Watcher::CheckJobsAtEnd() {
  for (const auto& [id, job] : jobs_) {
    const bool ended = job.ack.asked || job.cancel.asked;
    if (job.known && !ended && job.final_state.empty()) {
      Fail(job.bury.done ? "I13" : "I1",
           0,
           Name(id) + (job.bury.done ? " was buried and is not among the dead" : " is lost"));
    }
    if (job.max_attempts != 0 && job.deliveries_counted > job.max_attempts + job.kicks) {
      Fail("I13", 0, Name(id) + " was handed out more often than it has attempts");
    }
    if (job.attempt_max > job.deliveries + unknown_leases_) {
      Fail("I13", 0, Name(id) + " counts attempts that never were");
    }
  }
}

Verdict Watcher::Finish() {
  for (const auto& [key, index] : open_) {
    ++verdict_.unknown;
    unknown_leases_ += requests_[index].event.op == Op::kLease ? 1U : 0U;
  }
  if (final_) {
    CheckBatches();
    CheckJobsAtEnd();
  }
  if (!lateness_.empty()) {
    std::ranges::sort(lateness_);
    const auto at = [this](double quantile) {
      return lateness_[static_cast<size_t>(quantile * static_cast<double>(lateness_.size() - 1))];
    };
    verdict_.lateness_ms = {at(0.5), at(0.99), at(0.999), at(1)};
  }
  return std::move(verdict_);
}

Verdict Check(History history, const CheckOptions& options) {
  std::ranges::stable_sort(history, [](const Event& a, const Event& b) {
    return Moment{a.boot, a.t} < Moment{b.boot, b.t};
  });
  Watcher watcher(options);
  for (Event& event : history) {
    watcher.See(std::move(event));
  }
  return watcher.Finish();
}

}  // namespace delayd::checker

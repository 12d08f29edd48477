#include "tests/storm/api_client.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/job_json.h"
#include "protocol/problem.h"

namespace delayd::storm {
namespace {

constexpr Millis kTimeout{5000};
// What every job has: those of tube clients one second, the others the daemon's default of two.
constexpr Millis kLeaseMin{1000};
const std::string kJson = "application/json";

std::string LeasedEntry(const JobView& job, Millis lease) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(job.id));
  entry.String("payload", LabelOf(*job.payload));
  entry.String("token", FormatLeaseToken(*job.lease_token));
  entry.Number("attempt", job.attempt);
  entry.Number("lease", static_cast<uint64_t>(lease.count()));
  entry.Raw("late", std::to_string(job.lateness->count()));
  return entry.Take();
}

}  // namespace

ApiClient::ApiClient(ClientOptions options, std::function<bool()> stopping)
    : Client(std::move(options), std::move(stopping)) {
  auto client = protocol::Client::Create(options_.server);
  DELAYD_CHECK(client.ok());
  client_ = std::move(client).value();
}

void ApiClient::DoSomething() {
  const uint64_t dice = Below(100);
  if (dice < 32) {
    Enqueue(NewSpecs());
  } else if (dice < 72) {
    Lease();
  } else if (dice < 80) {
    Cancel();
  } else if (dice < 88) {
    Reschedule();
  } else if (dice < 91) {
    EnqueueAgain();
  } else if (dice < 93) {
    Kick();
  } else if (dice < 96) {
    Show();
  } else {
    UseOldLease();
  }
}

void ApiClient::DrawTimes(JobSpec* spec) {
  const uint64_t when = Below(100);
  const Millis delay(static_cast<int64_t>(when < 40   ? Below(50)
                                          : when < 80 ? 50 + Below(1500)
                                          : when < 92 ? 1500 + Below(2000)
                                                      : 3'600'000));
  if (Chance(20)) {
    spec->due = DueAt{SystemClock().Sample().wall + delay};
  } else {
    spec->due = DueAfter{delay};
  }
  spec->max_attempts = Chance(10) ? 1 : Chance(20) ? 3 : 25;
}

void ApiClient::Enqueue(const std::vector<JobSpec>& specs) {
  std::vector<std::string> entries;
  std::string lines;
  for (const JobSpec& spec : specs) {
    entries.push_back(SpecEntry(spec));
    lines += protocol::JobSpecToJson(spec) + "\n";
  }
  const bool single = specs.size() == 1 && Chance(70);
  const uint64_t request = history_.Invoke("enqueue", entries);
  const auto response =
      Call(request, "POST", "/v1/jobs", single ? kJson : "application/x-ndjson", lines);
  if (!response) {
    if (!specs.front().key.empty()) {
      unanswered_.push_back(specs);
    }
    return;
  }
  if (response->status >= 300) {
    return;
  }
  std::vector<protocol::EnqueuedJob> jobs;
  for (size_t at = 0; at < response->body.size() && !single;) {
    const size_t end = response->body.find('\n', at);
    auto job = protocol::ParseEnqueued(std::string_view(response->body).substr(at, end - at));
    DELAYD_CHECK(job.ok());
    jobs.push_back(*std::move(job));
    at = end + 1;
  }
  if (single) {
    auto job = protocol::ParseJob(response->body);
    DELAYD_CHECK(job.ok());
    jobs.push_back({*std::move(job), response->status == 200});
  }
  entries.clear();
  for (size_t i = 0; i < jobs.size(); ++i) {
    entries.push_back(EnqueuedEntry(jobs[i].job.id, jobs[i].existed));
    Remember(&mine_, Mine{jobs[i].job.id, specs.at(i)});
  }
  history_.Ok(request, response->commit_sequence, entries);
}

void ApiClient::Lease() {
  const Millis lease(static_cast<int64_t>(300 + Below(1200)));
  const protocol::LeaseRequest order{.count = static_cast<uint32_t>(1 + Below(10)),
                                     .wait = Millis(Chance(70) ? 0 : 50),
                                     .lease = lease};
  const uint64_t request = history_.Invoke("lease", {});
  const auto response = Call(request,
                             "POST",
                             std::string("/v1/queues/") + (Chance(60) ? "a" : "b") + "/lease",
                             kJson,
                             protocol::LeaseRequestToJson(order));
  if (!response || response->status >= 300) {
    return;
  }
  const auto page = protocol::ParseJobPage(response->body);
  DELAYD_CHECK(page.ok());
  DELAYD_CHECK(response->commit_sequence > 0 || page->jobs.empty());
  std::vector<std::string> entries;
  for (const JobView& job : page->jobs) {
    entries.push_back(LeasedEntry(job, lease));
    held_.push_back({FormatLeaseToken(*job.lease_token), job.id});
  }
  history_.Ok(request, response->commit_sequence, entries);
}

void ApiClient::EndOne() {
  const size_t index = Below(held_.size());
  const Held held = held_[index];
  const uint64_t dice = draining_ ? 0 : Below(100);
  if (dice < 60) {
    LeaseOp("ack", held, std::nullopt);
  } else if (dice < 75) {
    LeaseOp("nack", held, Millis(static_cast<int64_t>(Below(300))));
  } else if (dice < 80) {
    LeaseOp("nack", held, std::nullopt);
  } else if (dice < 84) {
    LeaseOp("bury", held, std::nullopt);
  } else if (dice < 92) {
    return LeaseOp("extend", held, Millis(static_cast<int64_t>(300 + Below(1000))));
  }
  // Else it is forgotten, and its lease runs out.
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  Remember(&old_, held);
}

void ApiClient::UseOldLease() {
  if (!old_.empty()) {
    LeaseOp(Chance(50) ? "ack" : "extend", old_[Below(old_.size())], std::nullopt);
  }
}

void ApiClient::LeaseOp(const std::string& op, const Held& held, std::optional<Millis> time) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(held.id));
  entry.String("token", held.token);
  protocol::LeaseChange change;
  if (time && op == "nack") {
    entry.Number("delay", static_cast<uint64_t>(time->count()));
    change.delay = time;
  } else if (time) {
    entry.Number("lease", static_cast<uint64_t>(time->count()));
    change.lease = time;
  } else if (op == "extend") {
    entry.Number("lease", static_cast<uint64_t>(kLeaseMin.count()));
  }
  const uint64_t request = history_.Invoke(op, {entry.Take()});
  const bool has_body = op != "ack";
  Do(request,
     "POST",
     "/v1/leases/" + held.token + "/" + op,
     has_body ? kJson : "",
     has_body ? protocol::LeaseChangeToJson(change) : "");
}

std::string ApiClient::TargetOf(const Mine& mine) {
  return mine.spec.key.empty() || Chance(50) ? "/v1/jobs/" + std::to_string(ToInt(mine.id))
                                             : "/v1/queues/" + mine.spec.queue + "/jobs/by-key/" +
                                                   protocol::PercentEncode(mine.spec.key);
}

void ApiClient::Cancel() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const uint64_t request = history_.Invoke("cancel", {IdEntry(mine->id)});
  Do(request, "DELETE", TargetOf(*mine), "", "");
}

void ApiClient::Show() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const uint64_t request = history_.Invoke("show", {IdEntry(mine->id)});
  const auto response = Call(request, "GET", "/v1/jobs/" + std::to_string(ToInt(mine->id)), "", "");
  if (!response || response->status >= 300) {
    return;
  }
  const auto job = protocol::ParseJob(response->body);
  DELAYD_CHECK(job.ok());
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(job->id));
  entry.String("state", JobStateName(job->state));
  // Of a finished job nothing but its end is kept here (history_retention).
  if (job->payload || job->state != JobState::kFinished) {
    entry.String("payload", LabelOf(job->payload.value_or("none")));
  }
  history_.Ok(request, response->commit_sequence, {entry.Take()});
}

void ApiClient::Reschedule() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const Millis delay(static_cast<int64_t>(Chance(95) ? Below(1500) : 3'600'000));
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(mine->id));
  entry.Number("delay", static_cast<uint64_t>(delay.count()));
  const uint64_t request = history_.Invoke("reschedule", {entry.Take()});
  Do(request,
     "PATCH",
     TargetOf(*mine),
     kJson,
     protocol::RescheduleRequestToJson({.due = DueAfter{delay}}));
}

void ApiClient::Kick() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const uint64_t request = history_.Invoke("kick", {KickEntry(mine->id)});
  Do(request, "POST", TargetOf(*mine) + "/kick", "", "");
}

void ApiClient::Do(uint64_t request,
                   std::string_view method,
                   const std::string& target,
                   const std::string& content_type,
                   const std::string& body) {
  const auto response = Call(request, method, target, content_type, body);
  if (response && response->status < 300) {
    history_.Ok(request, response->commit_sequence, {});
  }
}

std::optional<protocol::HttpResponse> ApiClient::Call(uint64_t request,
                                                      std::string_view method,
                                                      const std::string& target,
                                                      const std::string& content_type,
                                                      const std::string& body) {
  auto response = client_->Call(method, target, content_type, body, kTimeout);
  // 408: it did not arrive in time, because this process stood still or the daemon did.
  if (!response.ok() || response->status >= 500 || response->status == 408) {
    history_.Unknown(request);
    WaitForDaemon();
    return std::nullopt;
  }
  // No jobs, said because the daemon stops, rests on no commit.
  DELAYD_CHECK(response->commit_sequence > 0 || target.ends_with("/lease"));
  if (response->status >= 300) {
    history_.Fail(request,
                  response->commit_sequence,
                  protocol::ParseProblem(response->status, response->body).reason());
  }
  return *std::move(response);
}

// Requests to a daemon that is away would all count as "may have happened".
void ApiClient::WaitForDaemon() {
  while (!stopping_()) {
    const auto health = client_->Call("GET", "/readyz", "", "", kTimeout);
    if (health.ok() && health->status == 200) {
      return;
    }
    ::poll(nullptr, 0, 3);
  }
}

}  // namespace delayd::storm

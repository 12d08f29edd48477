#include "tests/storm/client.h"

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
constexpr size_t kRemembered = 200;
const std::string kJson = "application/json";

std::string IdEntry(JobId id) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  return entry.Take();
}

std::string SpecEntry(const JobSpec& spec) {
  protocol::JsonObjectWriter entry;
  entry.String("queue", spec.queue);
  entry.String("payload", LabelOf(spec.payload));
  if (!spec.key.empty()) {
    entry.String("key", spec.key);
  }
  if (const auto* after = std::get_if<DueAfter>(&spec.due)) {
    entry.Number("delay", static_cast<uint64_t>(after->delay.count()));
  } else {
    entry.Number("due", static_cast<uint64_t>(ToMillis(std::get<DueAt>(spec.due).at)));
  }
  entry.Number("max_attempts", *spec.max_attempts);
  return entry.Take();
}

std::string EnqueuedEntry(JobId id, bool existed) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.Bool("existed", existed);
  return entry.Take();
}

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

template <typename T>
void Remember(std::vector<T>* list, T one) {
  list->push_back(std::move(one));
  if (list->size() > kRemembered) {
    list->erase(list->begin());
  }
}

}  // namespace

StormClient::StormClient(const ClientOptions& options, std::function<bool()> stopping)
    : options_(options),
      stopping_(std::move(stopping)),
      random_(options.seed * 1000 + options.proc),
      history_(options.history, options.proc) {
  auto client = protocol::Client::Create(options.server);
  DELAYD_CHECK(client.ok());
  client_ = std::move(client).value();
}

void StormClient::Run() {
  while (!stopping_()) {
    Step();
  }
}

void StormClient::Step() {
  if (draining_) {
    return held_.empty() ? Lease() : EndOne();
  }
  if (!unanswered_.empty() && Chance(80)) {
    const std::vector<JobSpec> again = std::move(unanswered_.back());
    unanswered_.pop_back();
    return Enqueue(again);
  }
  if (!held_.empty() && Chance(50)) {
    return EndOne();
  }
  const uint64_t dice = Below(100);
  if (dice < 32) {
    EnqueueNew();
  } else if (dice < 72) {
    Lease();
  } else if (dice < 80) {
    Cancel();
  } else if (dice < 88) {
    Reschedule();
  } else if (dice < 92) {
    EnqueueAgain();
  } else if (dice < 95) {
    Show();
  } else {
    UseOldLease();
  }
}

JobSpec StormClient::NewSpec(bool keyed) {
  const uint64_t dice = Below(100);
  const uint64_t size = dice < 85   ? Below(200)
                        : dice < 95 ? Below(8000)
                        : dice < 99 ? Below(30'000)
                                    : Below(200'000);
  const std::string label = "c" + std::to_string(options_.proc) + "-" +
                            std::to_string(next_label_++) + "-" + std::to_string(size);
  JobSpec spec{.queue = Chance(70) ? "a" : "b", .payload = MakePayload(label)};
  const uint64_t when = Below(100);
  const Millis delay(static_cast<int64_t>(when < 40   ? Below(50)
                                          : when < 80 ? 50 + Below(1500)
                                          : when < 92 ? 1500 + Below(2000)
                                                      : 3'600'000));
  if (Chance(20)) {
    spec.due = DueAt{SystemClock().Sample().wall + delay};
  } else {
    spec.due = DueAfter{delay};
  }
  spec.max_attempts = Chance(10) ? 1 : Chance(20) ? 3 : 25;
  if (keyed) {
    spec.key = "k" + label;
  }
  return spec;
}

void StormClient::EnqueueNew() {
  const bool keyed = Chance(50);
  std::vector<JobSpec> specs;
  for (uint64_t n = Chance(60) ? 1 : 2 + Below(8); n > 0; --n) {
    specs.push_back(NewSpec(keyed));
  }
  Enqueue(specs);
}

// The same again, which must find the job that is there; or other content under its key, which
// must be refused, or is another job when the first one has finished.
void StormClient::EnqueueAgain() {
  const std::optional<Mine> mine = PickMine();
  if (!mine || mine->spec.key.empty()) {
    return;
  }
  JobSpec spec = mine->spec;
  if (Chance(30)) {
    spec.payload = NewSpec(false).payload;
    // From here on the key may name another job than the one remembered.
    std::erase_if(mine_, [&spec](const Mine& one) { return one.spec.key == spec.key; });
  }
  Enqueue({spec});
}

void StormClient::Enqueue(const std::vector<JobSpec>& specs) {
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

void StormClient::Lease() {
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

void StormClient::EndOne() {
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

void StormClient::UseOldLease() {
  if (!old_.empty()) {
    LeaseOp(Chance(50) ? "ack" : "extend", old_[Below(old_.size())], std::nullopt);
  }
}

void StormClient::LeaseOp(const std::string& op, const Held& held, std::optional<Millis> time) {
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
  }
  const uint64_t request = history_.Invoke(op, {entry.Take()});
  const bool has_body = op != "ack";
  const auto response = Call(request,
                             "POST",
                             "/v1/leases/" + held.token + "/" + op,
                             has_body ? kJson : "",
                             has_body ? protocol::LeaseChangeToJson(change) : "");
  if (response && response->status < 300) {
    history_.Ok(request, response->commit_sequence, {});
  }
}

std::optional<StormClient::Mine> StormClient::PickMine() {
  if (mine_.empty()) {
    return std::nullopt;
  }
  return mine_[Below(mine_.size())];
}

std::string StormClient::TargetOf(const Mine& mine) {
  return mine.spec.key.empty() || Chance(50) ? "/v1/jobs/" + std::to_string(ToInt(mine.id))
                                             : "/v1/queues/" + mine.spec.queue + "/jobs/by-key/" +
                                                   protocol::PercentEncode(mine.spec.key);
}

void StormClient::Cancel() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const uint64_t request = history_.Invoke("cancel", {IdEntry(mine->id)});
  const auto response = Call(request, "DELETE", TargetOf(*mine), "", "");
  if (response && response->status < 300) {
    history_.Ok(request, response->commit_sequence, {});
  }
}

void StormClient::Show() {
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

void StormClient::Reschedule() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const Millis delay(static_cast<int64_t>(Chance(95) ? Below(1500) : 3'600'000));
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(mine->id));
  entry.Number("delay", static_cast<uint64_t>(delay.count()));
  const uint64_t request = history_.Invoke("reschedule", {entry.Take()});
  const auto response = Call(request,
                             "PATCH",
                             TargetOf(*mine),
                             kJson,
                             protocol::RescheduleRequestToJson({.due = DueAfter{delay}}));
  if (response && response->status < 300) {
    history_.Ok(request, response->commit_sequence, {});
  }
}

std::optional<protocol::HttpResponse> StormClient::Call(uint64_t request,
                                                        std::string_view method,
                                                        const std::string& target,
                                                        const std::string& content_type,
                                                        const std::string& body) {
  auto response = client_->Call(method, target, content_type, body, kTimeout);
  if (!response.ok() || response->status >= 500) {
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
void StormClient::WaitForDaemon() {
  while (!stopping_()) {
    const auto health = client_->Call("GET", "/readyz", "", "", kTimeout);
    if (health.ok() && health->status == 200) {
      return;
    }
    ::poll(nullptr, 0, 3);
  }
}

}  // namespace delayd::storm

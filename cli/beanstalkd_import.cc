#include "cli/beanstalkd_import.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/limits.h"
#include "cli/human_time.h"
#include "protocol/job_json.h"

namespace delayd::cli {
namespace {

// Reserved at a time: few enough to be done before a time to run of a second is over.
constexpr size_t kBatchJobs = 200;
constexpr size_t kRequestBytes = size_t{4} << 20;

// No more than the longest delay: what stands there is the source's word.
Millis Seconds(std::string_view stats, std::string_view key) {
  constexpr uint64_t kMost = limits::kDelayMsMax / 1000;
  return Millis(int64_t{1000} * std::min(beanstalk::StatsNumber(stats, key), kMost));
}

Status Unexpected(std::string_view command, const beanstalk::ServerReply& reply) {
  return Internal("the source answered " + std::string(command) + " with '" + reply.line +
                  "'; is it a beanstalkd?");
}

// An answer that was lost leaves it open.
bool MayBeHere(const Status& enqueued) {
  return enqueued.ok() || enqueued.code() == StatusCode::kUnknown;
}

}  // namespace

// Drained into itself it would never end, and its jobs would lose their keys. A delete-key without
// a key does nothing anywhere: delayd knows the verb and finds fault with the rest.
Status BeanstalkdImport::RefuseDelayd() {
  constexpr std::string_view kProbe = "delete-key ";
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply reply, source_->Call(kProbe));
  if (reply.word() == "UNKNOWN_COMMAND") {
    return OkStatus();
  }
  if (reply.word() == "BAD_FORMAT") {
    return InvalidArgument(source_->address() + " is a delayd; use delayctl export and import",
                           "usage");
  }
  return Unexpected("delete-key", reply);
}

Status BeanstalkdImport::Begin() {
  DELAYD_RETURN_IF_ERROR(RefuseDelayd());
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply stats, source_->Call("stats"));
  instance_ = beanstalk::StatsField(stats.body, "id");
  if (instance_.empty()) {
    return Unexpected("stats", stats);
  }
  return OkStatus();
}

Status BeanstalkdImport::WatchAllTubes() {
  tubes_.clear();
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply list, source_->Call("list-tubes"));
  std::string_view rest = list.body;
  constexpr std::string_view kItem = "- ";
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kItem)) {
      std::string_view name = line.substr(kItem.size());
      if (name.size() >= 2 && name.front() == '"') {
        name = name.substr(1, name.size() - 2);
      }
      tubes_.emplace_back(name);
    }
  }
  for (const std::string& tube : tubes_) {
    source_->Add("watch " + tube);
  }
  for (size_t i = 0; i < tubes_.size(); ++i) {
    DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply reply, source_->Read());
    if (reply.word() != "WATCHING") {
      return Unexpected("watch", reply);
    }
  }
  return OkStatus();
}

Status BeanstalkdImport::Run() {
  DELAYD_RETURN_IF_ERROR(Begin());
  const Status passed = PassUntilDone();
  // Whatever has ended it: the source may be well.
  const Status put_back = set_aside_.PutBack();
  counts_.too_large = set_aside_.size();
  DELAYD_RETURN_IF_ERROR(passed);
  DELAYD_RETURN_IF_ERROR(put_back);
  DELAYD_RETURN_IF_ERROR(CountLeft());
  return CountFull();
}

Status BeanstalkdImport::PassUntilDone() {
  for (;;) {
    const uint64_t moved_before = moved();
    DELAYD_RETURN_IF_ERROR(Pass());
    DELAYD_RETURN_IF_ERROR(CountLeft());
    if (counts_.left.unreserved() == 0) {
      return OkStatus();
    }
    if (moved() > moved_before) {
      continue;
    }
    // Only what finds no room is left to move.
    if (full_.empty()) {
      return OkStatus();
    }
    DELAYD_ASSIGN_OR_RETURN(const bool again, patience_.Wait(why_full_, why_full_.message()));
    if (!again) {
      return OkStatus();
    }
  }
}

// One pass misses what comes while it goes on: jobs of tubes that are new, delayed ones of a paused
// tube whose time has come, those that a worker gives back.
Status BeanstalkdImport::Pass() {
  full_.clear();
  DELAYD_RETURN_IF_ERROR(WatchAllTubes());
  DELAYD_RETURN_IF_ERROR(DrainReady());
  for (const std::string& tube : tubes_) {
    if (full_.contains(tube)) {
      continue;
    }
    DELAYD_RETURN_IF_ERROR(PauseAsThere(tube));
    // The ready ones of a tube that is paused are not given to a reserve.
    for (const Which which : {Which::kReady, Which::kDelayed, Which::kBuried}) {
      DELAYD_RETURN_IF_ERROR(DrainHeads(tube, which));
    }
  }
  // What became ready meanwhile.
  return DrainReady();
}

JobSpec BeanstalkdImport::SpecOf(uint64_t id, std::string_view stats, std::string body) const {
  const auto field = [stats](std::string_view key) { return beanstalk::StatsField(stats, key); };
  JobSpec spec;
  spec.queue = field("tube");
  spec.key = "beanstalkd:" + instance_ + ":" + std::to_string(id);
  spec.priority = static_cast<uint32_t>(beanstalk::StatsNumber(stats, "pri"));
  spec.lease = std::clamp(Seconds(stats, "ttr"), Millis(1000), Millis(limits::kLeaseMsMax));
  spec.max_attempts = 0;
  spec.payload = std::move(body);
  // The key stands for that job, whatever has become of it there: its delay goes on, and a worker
  // may have changed its state and priority, when a second run finds it.
  spec.past = std::make_shared<JobPast>();
  spec.past->fingerprint = Fingerprint(spec.key);
  const std::string_view state = field("state");
  spec.buried = state == "buried";
  if (spec.buried) {  // why, that server does not say
    spec.past->last_error = "buried in beanstalkd";
  }
  if (state == "delayed") {
    spec.due =
        DueAfter{std::min(Seconds(stats, "time-left") + Millis(1000), Millis(limits::kDelayMsMax))};
  }
  return spec;
}

Status BeanstalkdImport::DrainReady() {
  // The last one cannot be ignored.
  while (full_.size() < tubes_.size()) {
    for (size_t i = 0; i < kBatchJobs; ++i) {
      source_->Add("reserve-with-timeout 0");
    }
    std::vector<uint64_t> ids;
    std::vector<std::string> bodies;
    for (size_t i = 0; i < kBatchJobs; ++i) {
      DELAYD_ASSIGN_OR_RETURN(beanstalk::ServerReply reply, source_->Read());
      if (reply.word() == "RESERVED") {
        ids.push_back(reply.number());
        bodies.push_back(std::move(reply.body));
      } else if (reply.word() != "TIMED_OUT" && reply.word() != "DEADLINE_SOON") {
        return Unexpected("reserve-with-timeout", reply);
      }
    }
    if (ids.empty()) {
      return OkStatus();
    }
    for (const uint64_t id : ids) {
      source_->Add("stats-job " + std::to_string(id));
    }
    std::vector<Found> jobs;
    for (size_t i = 0; i < ids.size(); ++i) {
      DELAYD_ASSIGN_OR_RETURN(beanstalk::ServerReply stats, source_->Read());
      if (stats.word() == "OK") {  // else its time ran out, and it was worked on and deleted
        JobSpec spec = SpecOf(ids[i], stats.body, std::move(bodies[i]));
        spec.due = DueAfter{};
        spec.buried = false;
        spec.past->last_error.clear();
        jobs.push_back({.id = ids[i], .stats = std::move(stats.body), .spec = std::move(spec)});
      }
    }
    DELAYD_RETURN_IF_ERROR(Move(std::move(jobs)));
  }
  return OkStatus();
}

// What is not to be worked there now is not to be worked here either. A tube without jobs to move
// is left alone.
Status BeanstalkdImport::PauseAsThere(const std::string& tube) {
  for (;;) {
    DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply stats,
                            source_->Call("stats-tube " + tube));
    const auto number = [&stats](std::string_view key) {
      return beanstalk::StatsNumber(stats.body, key);
    };
    if (number("pause-time-left") == 0 || number("current-jobs-ready") +
                                                  number("current-jobs-delayed") +
                                                  number("current-jobs-buried") ==
                                              0) {
      return OkStatus();
    }
    const Status paused = PauseHere(tube, Seconds(stats.body, "pause-time-left"));
    if (!MayGoWellLater(paused)) {
      return paused;
    }
    DELAYD_RETURN_IF_ERROR(WaitFor(paused));
  }
}

// Unless it is paused for longer already.
Status BeanstalkdImport::PauseHere(const std::string& tube, Millis left) {
  const StatusOr<protocol::QueueCounts> here = api_->Queue(tube);
  if (!here.ok() && here.status().code() != StatusCode::kNotFound) {
    return here.status();
  }
  if (here.ok() && here->paused && here->pause_left.value_or(Millis::max()) >= left) {
    return OkStatus();
  }
  left = std::min(left + Millis(1000), Millis(limits::kDelayMsMax));
  const StatusOr<protocol::QueueCounts> paused =
      api_->Pause(tube, {.duration = left, .create = true});
  if (paused.ok()) {
    paused_.insert(tube);
  }
  return paused.status();
}

Status BeanstalkdImport::DrainHeads(const std::string& tube, Which which) {
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply used, source_->Call("use " + tube));
  if (used.word() != "USING") {
    return Unexpected("use", used);
  }
  heads_too_large_ = 0;
  for (;;) {
    DELAYD_ASSIGN_OR_RETURN(const bool more, TakeHead(which));
    // All that are too large one after another: there is nothing behind them.
    if (!more || heads_too_large_ > set_aside_.size() || full_.contains(tube)) {
      return OkStatus();
    }
  }
}

// The first of its kind. False: there is none.
StatusOr<bool> BeanstalkdImport::TakeHead(Which which) {
  constexpr std::string_view kPeek[] = {"peek-ready", "peek-delayed", "peek-buried"};
  constexpr std::string_view kState[] = {"ready", "delayed", "buried"};
  const auto kind = static_cast<size_t>(which);
  DELAYD_ASSIGN_OR_RETURN(beanstalk::ServerReply head, source_->Call(kPeek[kind]));
  if (head.word() == "NOT_FOUND") {
    return false;
  }
  const uint64_t id = head.number();
  if (head.word() != "FOUND") {
    return Unexpected(kPeek[kind], head);
  }
  const std::string number = std::to_string(id);
  DELAYD_ASSIGN_OR_RETURN(beanstalk::ServerReply stats, source_->Call("stats-job " + number));
  if (beanstalk::StatsField(stats.body, "state") != kState[kind]) {
    return true;  // it has moved on: look again
  }
  if (which == Which::kReady) {
    // A paused tube gives nothing to a reserve, but this one by its id. A server without
    // reserve-job deletes it all the same.
    DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply reserved,
                            source_->Call("reserve-job " + number));
    if (reserved.word() == "NOT_FOUND") {
      return true;
    }
  }
  JobSpec spec = SpecOf(id, stats.body, std::move(head.body));
  std::vector<Found> jobs;
  jobs.push_back({.id = id, .stats = std::move(stats.body), .spec = std::move(spec)});
  DELAYD_RETURN_IF_ERROR(Move(std::move(jobs)));
  return true;
}

// Here first, durably; then it is deleted there.
Status BeanstalkdImport::Move(std::vector<Found> jobs) {
  for (Found& job : jobs) {
    job.too_large = set_aside_.Holds(job.id);
  }
  const auto fit_end = std::stable_partition(
      jobs.begin(), jobs.end(), [](const Found& job) { return !job.too_large; });
  const std::span<Found> fit(jobs.begin(), fit_end);
  size_t settled = 0;
  Status why_later;
  counts_.undeleted = 0;
  while (settled < fit.size() && why_later.ok()) {
    DELAYD_ASSIGN_OR_RETURN(const size_t count, EnqueueSome(fit.subspan(settled), &why_later));
    settled += count;
  }
  for (Found& job : fit.subspan(settled)) {
    job.later = true;
  }
  DELAYD_RETURN_IF_ERROR(Delete(fit));
  for (const Found& job : jobs) {
    heads_too_large_ = job.too_large ? heads_too_large_ + 1 : 0;
    DELAYD_RETURN_IF_ERROR(job.too_large ? set_aside_.Put(job.id, job.stats) : OkStatus());
  }
  if (!std::ranges::all_of(fit, &Found::later)) {
    patience_.Reset();
  }
  DELAYD_RETURN_IF_ERROR(going_on_(counts_));
  DELAYD_RETURN_IF_ERROR(GiveBack(fit));
  return why_later.ok() ? OkStatus() : WaitFor(why_later);
}

Status BeanstalkdImport::Delete(std::span<const Found> jobs) {
  size_t deleted = 0;
  for (const Found& job : jobs) {
    if (!job.too_large && !job.later) {
      source_->Add("delete " + std::to_string(job.id));
      ++deleted;
    }
  }
  for (size_t i = 0; i < deleted; ++i) {
    DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply reply, source_->Read());
    --counts_.undeleted;
    counts_.taken += reply.word() == "DELETED" ? 0U : 1U;
  }
  return OkStatus();
}

// Held while there is no room here, their time would run out in the middle of a later try. Those
// that are not reserved the source does not find.
Status BeanstalkdImport::GiveBack(std::span<const Found> jobs) {
  size_t released = 0;
  for (const Found& job : jobs) {
    if (job.later) {
      source_->Add("release " + std::to_string(job.id) + " " +
                   std::string(beanstalk::StatsField(job.stats, "pri")) + " 0");
      ++released;
    }
  }
  for (size_t i = 0; i < released; ++i) {
    DELAYD_RETURN_IF_ERROR(source_->Read().status());
  }
  return OkStatus();
}

Status BeanstalkdImport::WaitFor(const Status& why) {
  DELAYD_ASSIGN_OR_RETURN(const bool again, patience_.Wait(why, why.message()));
  return again ? OkStatus() : why;
}

// As many of them as go into one request, or as find room here before one must wait; tells how
// many.
StatusOr<size_t> BeanstalkdImport::EnqueueSome(std::span<Found> jobs, Status* why_later) {
  std::string lines;
  size_t count = 0;
  for (; count < jobs.size() && (count == 0 || lines.size() < kRequestBytes); ++count) {
    lines += protocol::JobSpecToJson(jobs[count].spec) + "\n";
  }
  const auto enqueued = api_->EnqueueLines(lines, count);
  counts_.undeleted += MayBeHere(enqueued.status()) ? count : 0;
  if (enqueued.ok()) {
    counts_.imported += enqueued->size();
    for (const protocol::EnqueuedJob& job : *enqueued) {
      counts_.existed += job.existed ? 1U : 0U;
    }
    return count;
  }
  if (MayGoWellLater(enqueued.status())) {
    *why_later = enqueued.status();
    return size_t{0};
  }
  // Many may never find room together: one by one they take what there is.
  if (enqueued.status().reason() != "key_conflict" && !IsTooLarge(enqueued.status()) &&
      !NeedsRoom(enqueued.status())) {
    return enqueued.status();
  }
  for (size_t i = 0; i < count; ++i) {
    Found& job = jobs[i];
    const Status status = full_.contains(job.spec.queue) ? why_full_ : EnqueueOne(&job);
    if (status.reason() == "queue_full") {
      DELAYD_RETURN_IF_ERROR(PutOff(&job, status));
      continue;
    }
    if (MayGoWellLater(status) || NeedsRoom(status)) {
      *why_later = status;
      return i;
    }
    DELAYD_RETURN_IF_ERROR(status);
  }
  return count;
}

// A conflict is the job of an earlier run, to which somebody here gave other content: the key names
// no other.
Status BeanstalkdImport::EnqueueOne(Found* job) {
  const auto enqueued = api_->EnqueueLines(protocol::JobSpecToJson(job->spec) + "\n", 1);
  job->too_large = IsTooLarge(enqueued.status());
  if (job->too_large) {
    return OkStatus();
  }
  if (!enqueued.ok() && enqueued.status().reason() != "key_conflict") {
    counts_.undeleted += MayBeHere(enqueued.status()) ? 1U : 0U;
    return enqueued.status();
  }
  ++counts_.imported;
  ++counts_.undeleted;
  counts_.existed += !enqueued.ok() || enqueued->front().existed ? 1U : 0U;
  return OkStatus();
}

// The rest of its tube would find no room either: this pass goes around it.
Status BeanstalkdImport::PutOff(Found* job, const Status& why) {
  job->later = true;
  if (!full_.insert(job->spec.queue).second) {
    return OkStatus();
  }
  why_full_ = why;
  return source_->Call("ignore " + job->spec.queue).status();
}

Status BeanstalkdImport::CountLeft() {
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply stats, source_->Call("stats"));
  const auto jobs = [&stats](const char* state) {
    return beanstalk::StatsNumber(stats.body, std::string("current-jobs-") + state);
  };
  counts_.left = {.ready = jobs("ready"),
                  .delayed = jobs("delayed"),
                  .buried = jobs("buried"),
                  .reserved = jobs("reserved")};
  return OkStatus();
}

Status BeanstalkdImport::CountFull() {
  for (const std::string& tube : full_) {
    DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply stats,
                            source_->Call("stats-tube " + tube));
    uint64_t left = 0;
    for (const char* state : {"ready", "delayed", "buried"}) {
      left += beanstalk::StatsNumber(stats.body, std::string("current-jobs-") + state);
    }
    left -= std::min<uint64_t>(left, set_aside_.CountOf(tube));
    if (left > 0) {
      full_texts_.insert(tube + " (" + Jobs(left) + ")");
      counts_.queue_full += left;
    }
  }
  return OkStatus();
}

}  // namespace delayd::cli

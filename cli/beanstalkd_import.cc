#include "cli/beanstalkd_import.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/limits.h"
#include "cli/human_time.h"
#include "protocol/job_json.h"

namespace delayd::cli {
namespace {

// Jobs reserved at a time: few enough to move them all within a time to run of one second.
constexpr size_t kBatchJobs = 200;
constexpr size_t kRequestBytes = size_t{4} << 20;
// So few that the replies fit into a socket that nobody reads meanwhile.
constexpr size_t kTubesAtOnce = 200;

// Capped at the longest delay, because the source may say anything.
Millis Seconds(std::string_view stats, std::string_view key) {
  constexpr uint64_t kMost = limits::kDelayMsMax / 1000;
  return Millis(int64_t{1000} * std::min(beanstalk::StatsNumber(stats, key), kMost));
}

Status Unexpected(std::string_view command, const beanstalk::ServerReply& reply) {
  return Internal("the source answered " + std::string(command) + " with '" + reply.line +
                  "'; is it a beanstalkd?");
}

// A lost answer leaves open whether the job was enqueued.
bool MayBeHere(const Status& enqueued) {
  return enqueued.ok() || enqueued.code() == StatusCode::kUnknown;
}

}  // namespace

// Draining delayd into itself would never end, and its jobs would lose their keys. A delete-key
// without a key does nothing on any server, but delayd knows the verb and answers BAD_FORMAT.
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
  // A source whose replies nobody takes does not take commands either.
  for (std::span<const std::string> left(tubes_); !left.empty();) {
    const auto batch = left.first(std::min(left.size(), kTubesAtOnce));
    left = left.subspan(batch.size());
    for (const std::string& tube : batch) {
      source_->Add("watch " + tube);
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply reply, source_->Read());
      if (reply.word() != "WATCHING") {
        return Unexpected("watch", reply);
      }
    }
  }
  return OkStatus();
}

Status BeanstalkdImport::Run() {
  DELAYD_RETURN_IF_ERROR(Begin());
  const Status passed = PassUntilDone();
  // Whatever ended the passes, the source may still be reachable.
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
    // All that is left to move are jobs that find no room.
    if (full_.empty()) {
      return OkStatus();
    }
    DELAYD_ASSIGN_OR_RETURN(const bool again, patience_.Wait(why_full_, why_full_.message()));
    if (!again) {
      return OkStatus();
    }
  }
}

// A pass misses what turns up during it: jobs in new tubes, delayed jobs of a paused tube that fall
// due, jobs that a worker gives back.
Status BeanstalkdImport::Pass() {
  full_.clear();
  DELAYD_RETURN_IF_ERROR(WatchAllTubes());
  DELAYD_RETURN_IF_ERROR(DrainReady());
  for (const std::string& tube : tubes_) {
    if (full_.contains(tube)) {
      continue;
    }
    DELAYD_RETURN_IF_ERROR(PauseAsThere(tube));
    // A reserve does not get the ready jobs of a paused tube.
    for (const Which which : {Which::kReady, Which::kDelayed, Which::kBuried}) {
      DELAYD_RETURN_IF_ERROR(DrainHeads(tube, which));
    }
  }
  // Jobs that became ready meanwhile.
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
  // The fingerprint covers only the key, which identifies the job whatever has become of it: when a
  // second run finds it, its delay has run on, and a worker may have changed state and priority.
  spec.past = std::make_shared<JobPast>();
  spec.past->fingerprint = Fingerprint(spec.key);
  const std::string_view state = field("state");
  spec.buried = state == "buried";
  if (spec.buried) {  // the source does not say why
    spec.past->last_error = "buried in beanstalkd";
  }
  if (state == "delayed") {
    spec.due =
        DueAfter{std::min(Seconds(stats, "time-left") + Millis(1000), Millis(limits::kDelayMsMax))};
  }
  return spec;
}

Status BeanstalkdImport::DrainReady() {
  // Stops when all tubes are full: the last watched tube cannot be ignored.
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
      if (stats.word() == "OK") {  // else its time to run ran out, and a worker did and deleted it
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

// Jobs that are paused at the source must not be handed out here either. A tube without jobs to
// move is left alone.
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

// Pauses the queue here, unless it is already paused for longer.
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
    // More consecutive heads are too large than jobs are set aside: we have gone round them all.
    if (!more || heads_too_large_ > set_aside_.size() || full_.contains(tube)) {
      return OkStatus();
    }
  }
}

// Moves the first job of its kind. False when there is none.
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
    return true;  // its state has changed: look again
  }
  if (which == Which::kReady) {
    // A paused tube gives nothing to a reserve, but a job by its id to reserve-job. A server
    // without reserve-job deletes a ready job all the same.
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

// Enqueues jobs here, durably, and only then deletes them at the source.
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

// If we held jobs until there is room here, their time to run would end in the middle of a later
// try. Jobs that are not reserved make the source answer NOT_FOUND, which is ignored.
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

// Enqueues as many jobs as fit into one request, or as find room before one must wait; returns how
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
  // A batch may never find room as a whole, so its jobs take what room there is one by one.
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

// A key conflict means that an earlier run enqueued the job and somebody here has changed its
// content: the key identifies no other job.
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

// The rest of the tube would find no room either, so this pass skips it.
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

// Finding jobs, cancel, reschedule, show; where a job's due time puts it; what a crash leaves.
#include "tests/simulation/model.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "daemon/engine/list_page.h"
#include "daemon/engine/other_life.h"

namespace delayd::simulation {

using engine::RequestId;

void Model::Execute(RequestId request, const engine::Command& command, const Now& now) {
  SetNow(now);
  std::visit([this, request](const auto& one) { Do(request, one); }, command);
  settled_ = false;
}

void Model::Answer(RequestId request, Body body, uint64_t batch) {
  Expected expected{.batch = batch, .decided = now_};
  expected.reply.request = request;
  expected.reply.body = std::move(body);
  answers_.push_back(std::move(expected));
}

void Model::Refuse(RequestId request, StatusCode code, std::string_view reason, uint64_t batch) {
  Expected expected{.batch = batch, .decided = now_};
  expected.reply.request = request;
  expected.reply.status = Status(code, "as predicted", reason);
  answers_.push_back(std::move(expected));
}

std::optional<DoneKey> Model::FindDone(JobId id) const {
  for (const auto& [key, done] : done_) {
    if (key.second == id && IsKept(done)) {
      return key;
    }
  }
  return std::nullopt;
}

Model::Found Model::Locate(const JobRef& ref) const {
  JobId id{};
  if (const auto* by_key = std::get_if<KeyRef>(&ref)) {
    // What is kept of a job may tell of it longer than it holds its key.
    const auto key = keys_.find({by_key->queue, by_key->key});
    if (key == keys_.end()) {
      return {.error = "not_found", .code = StatusCode::kNotFound};
    }
    id = key->second.id;
  } else {
    id = std::get<JobId>(ref);
  }
  if (jobs_.contains(id)) {
    return {.id = id};
  }
  if (const std::optional<DoneKey> done = FindDone(id)) {
    return {.id = id, .finished = done};
  }
  return {.error = "not_found", .code = StatusCode::kNotFound};
}

// The batch that must be durable before the state of `ref` may be told: that of its last change.
uint64_t Model::BatchOfRef(const JobRef& ref) const {
  const Found found = Locate(ref);
  if (found.error != nullptr) {
    const auto* id = std::get_if<JobId>(&ref);
    const auto gone = id == nullptr ? gone_.end() : gone_.find(*id);
    return gone == gone_.end() ? 0 : gone->second;
  }
  return found.finished ? done_.at(*found.finished).batch : jobs_.at(found.id).batch;
}

void Model::SetDue(ModelJob* job, const DueSpec& due) {
  if (const auto* at = std::get_if<DueAt>(&due)) {
    job->due_kind = DueKind::kAbsolute;
    job->due = at->at;
    job->boot_id = 0;
    job->boot_due = BootTime();
    job->rounded_up = Micros(0);
    job->on_boot_clock = false;
    return;
  }
  const Millis delay = std::get<DueAfter>(due).delay;
  wall_offsets_.Note(now_);
  job->due_kind = DueKind::kRelative;
  job->due = now_.wall + delay;
  job->boot_id = BootId();
  job->boot_due = now_.boot + delay + Millis(delay > Millis(0) ? 1 : 0);
  const bool is_exact = delay > Millis(0) && HoldsAll(options_);
  job->rounded_up = is_exact ? Micros(999) - now_.boot_rest : Micros(0);
  job->on_boot_clock = true;
}

void Model::Place(ModelJob* job) {
  job->timer_rank = next_rank_++;
  job->waits_again = false;
  if (IsDue(*job, now_)) {
    MakeReady(job);
  } else {
    job->state = JobState::kScheduled;
  }
}

void Model::MakeReady(ModelJob* job) {
  job->state = JobState::kReady;
  ServeSoon(job->spec->queue);
}

Millis Model::KeptFor(const ModelJob& job) const {
  const engine::QueueSettings& settings = SettingsFor(job.spec->queue);
  const Millis key_kept = job.spec->key.empty() ? Millis(0) : settings.key_retention;
  return std::max(key_kept, settings.history_retention);
}

void Model::AddEvent(ModelJob* job,
                     JobEvent::Kind kind,
                     std::string_view who,
                     std::string_view what) {
  if (job->events.size() == limits::kJobEventsMax) {
    job->events.erase(job->events.begin());
  }
  job->events.push_back({.kind = kind,
                         .at = now_.wall,
                         .who = std::string(who),
                         .what = std::string(Utf8Front(what, limits::kEventErrorBytesMax))});
}

void Model::Finish(const ModelJob& job, bool cancelled) {
  const JobId id = job.id;
  const QueueKey queue_key{job.spec->queue, job.spec->key};
  const engine::QueueSettings& settings = SettingsFor(job.spec->queue);
  const Millis kept = KeptFor(job);
  const WallTime finished_at = std::max(now_.wall, done_mark);
  if (kept.count() == 0) {
    keys_.erase(queue_key);
  } else {
    if (!job.spec->key.empty()) {
      ModelKey& key = keys_.at(queue_key);
      key.batch = open_batch;
      key.finished = true;
      key.finished_at = finished_at;
      key.expiry = now_.wall + settings.key_retention;
    }
    ModelDone done{.queue = job.spec->queue,
                   .key = job.spec->key,
                   .cancelled = cancelled,
                   .attempts = job.attempts,
                   .due = job.due,
                   .created = job.created,
                   .kept_until = now_.wall + kept,
                   .batch = open_batch};
    if (settings.history_retention.count() > 0) {
      done.story = job;
    }
    done_[{finished_at, id}] = std::move(done);
  }
  RoomMade(job);
  gone_[id] = open_batch;
  jobs_.erase(id);
}

void Model::Trimmed(const DoneKey& done) {
  const auto found = done_.find(done);
  if (found == done_.end()) {
    return;
  }
  const auto key = keys_.find({found->second.queue, found->second.key});
  if (key != keys_.end() && key->second.finished && key->second.id == done.second) {
    keys_.erase(key);
  }
  done_.erase(found);
}

void Model::Named(const std::string& queue, QueueId id) {
  if (const auto found = queues_.find(queue); found != queues_.end()) {
    found->second.id = id;
  }
}

bool Model::IsEmpty(const std::string& queue) const {
  return std::ranges::none_of(jobs_,
                              [&](const auto& job) { return job.second.spec->queue == queue; }) &&
         std::ranges::none_of(done_, [&](const auto& done) { return done.second.queue == queue; });
}

std::string Model::Forgotten(const std::string& name, const Now& now) {
  const auto empty = std::ranges::count_if(
      queues_, [this](const auto& queue) { return queue.second.stored && IsEmpty(queue.first); });
  const auto found = queues_.find(name);
  if (found == queues_.end() || !found->second.stored || !IsEmpty(name)) {
    return "it has jobs, or is not there";
  }
  if (static_cast<size_t>(empty) <= options_.empty_queues_max) {
    return "there are no more than " + std::to_string(empty) + " empty ones";
  }
  ModelQueue& queue = found->second;
  const bool waited_for = !queue.waiters.empty();
  // With little memory it is by the answer, which is still to come, that a wait is known to be
  // over.
  if (queue.pause || queue.rate_timer || !queue.bucket.IsFull(now.boot) ||
      (waited_for && !Follows())) {
    return "it is in use";
  }
  if (waited_for) {
    queue = {.bucket = queue.bucket, .waiters = std::move(queue.waiters)};
  } else {
    queues_.erase(found);
  }
  return {};
}

Millis Model::LongestRetention() const {
  const auto of = [](const engine::QueueSettings& settings) {
    return std::max(settings.key_retention, settings.history_retention);
  };
  Millis longest = of(options_.defaults);
  for (const auto& [name, settings] : options_.queues) {
    longest = std::max(longest, of(settings));
  }
  return longest;
}

bool Model::HasRetentionOver() const {
  return std::ranges::any_of(done_,
                             [now = now_.wall, longest = LongestRetention()](const auto& done) {
                               return done.first.first + longest <= now;
                             });
}

std::optional<Millis> Model::UntilTrim(const Now& now) const {
  if (done_.empty()) {
    return std::nullopt;
  }
  // The two clocks show their milliseconds at different moments.
  const Millis left = done_.begin()->first.first + LongestRetention() - now.wall + Millis(1);
  return std::max(left, Millis(limits::kTrimIntervalMsMin));
}

void Model::AnswerJob(RequestId request, bool brief, JobView view) {
  Answer(request, brief ? Body() : Body(std::move(view)), open_batch);
}

bool Model::HasTag(const ModelJob& job, const std::vector<std::string>& tags) const {
  return tags.empty() || std::ranges::find(tags, TagOf(ViewOf(job, job.state))) != tags.end();
}

Model::CancelEnd Model::CancelOne(const JobRef& ref, const std::vector<std::string>& tags) {
  const Found found = Locate(ref);
  const uint64_t batch = BatchOfRef(ref);
  if (found.error != nullptr) {
    return {.code = found.code, .reason = found.error, .batch = batch};
  }
  if (found.finished) {
    return {.code = StatusCode::kFailedPrecondition, .reason = "finished", .batch = batch};
  }
  ModelJob& job = jobs_.at(found.id);
  if (job.state == JobState::kLeased) {
    return {.code = StatusCode::kFailedPrecondition, .reason = "leased", .batch = batch};
  }
  if (!HasTag(job, tags)) {
    return {.code = StatusCode::kFailedPrecondition, .reason = "changed", .batch = batch};
  }
  AddEvent(&job, JobEvent::Kind::kCancelled, {}, {});
  CancelEnd end{.batch = open_batch, .view = ViewOf(job, JobState::kFinished)};
  end.view.finished = now_.wall;
  end.view.outcome = "cancelled";
  ++counters_.cancelled;
  ++QueueOf(job.spec->queue).cancelled;
  Finish(job, /*cancelled=*/true);
  return end;
}

void Model::Do(RequestId request, const engine::Cancel& command) {
  CancelEnd end = CancelOne(command.job, command.if_tag);
  if (end.reason != nullptr) {
    return Refuse(request, end.code, end.reason, end.batch);
  }
  AnswerJob(request, command.brief, std::move(end.view));
}

void Model::Do(RequestId request, const engine::CancelIds& command) {
  if (command.jobs.empty()) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_count", 0);
  }
  engine::CancelledIds result;
  uint64_t batch = 0;
  for (const JobId id : command.jobs) {
    const CancelEnd end = CancelOne(id, {});
    batch = std::max(batch, end.batch);
    if (end.reason == nullptr) {
      ++result.cancelled;
    } else {
      result.refused.push_back({.id = id, .status = Status(end.code, {}, end.reason)});
    }
  }
  Answer(request, std::move(result), batch);
}

void Model::Do(RequestId request, const engine::Reschedule& command) {
  if (!command.due && !command.priority) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_reschedule", 0);
  }
  if (const char* reason = command.due ? ValidateDue(*command.due) : nullptr) {
    return Refuse(request, StatusCode::kInvalidArgument, reason, 0);
  }
  RescheduleOne(request, command);
}

// What a cursor goes on with was validated when the change began, by the clock as it stood then.
void Model::RescheduleOne(RequestId request, const engine::Reschedule& command) {
  const Found found = Locate(command.job);
  const uint64_t batch = BatchOfRef(command.job);
  if (found.error != nullptr) {
    return Refuse(request, found.code, found.error, batch);
  }
  if (found.finished) {
    return Refuse(request, StatusCode::kFailedPrecondition, "finished", batch);
  }
  ModelJob& job = jobs_.at(found.id);
  if (job.state == JobState::kLeased || job.state == JobState::kDead) {
    return Refuse(request, StatusCode::kFailedPrecondition, JobStateName(job.state), batch);
  }
  if (!HasTag(job, command.if_tag)) {
    return Refuse(request, StatusCode::kFailedPrecondition, "changed", batch);
  }
  job.rounded_up = Micros(0);
  if (command.due) {
    SetDue(&job, *command.due);
    job.place = std::max(job.due, mark);
    AddEvent(&job, JobEvent::Kind::kMoved, {}, {});
  }
  job.priority = command.priority.value_or(job.priority);
  job.batch = open_batch;
  Place(&job);
  ++counters_.rescheduled;
  Answer(request, ViewOf(job, job.state), open_batch);
}

void Model::Do(RequestId request, const engine::Touch& command) {
  const Found found = Locate(command.job);
  const uint64_t batch = BatchOfRef(command.job);
  if (found.error != nullptr) {
    return Refuse(request, found.code, found.error, batch);
  }
  if (found.finished) {
    return Refuse(request, StatusCode::kFailedPrecondition, "finished", batch);
  }
  ModelJob& job = jobs_.at(found.id);
  if (job.state == JobState::kLeased || job.state == JobState::kDead) {
    return Refuse(request, StatusCode::kFailedPrecondition, JobStateName(job.state), batch);
  }
  if (!HasTag(job, command.if_tag)) {
    return Refuse(request, StatusCode::kFailedPrecondition, "changed", batch);
  }
  const std::optional<Millis> delay = DelayOf(*job.spec);
  if (!delay) {
    return Refuse(request, StatusCode::kFailedPrecondition, "no_delay", batch);
  }
  if (const char* reason = ValidateDue(DueAfter{*delay})) {
    return Refuse(request, StatusCode::kInvalidArgument, reason, batch);
  }
  SetDue(&job, DueAfter{*delay});
  job.place = std::max(job.due, mark);
  job.batch = open_batch;
  Place(&job);
  ++counters_.rescheduled;
  Answer(request, ViewOf(job, job.state), open_batch);
}

void Model::Do(RequestId request, const engine::Show& command) {
  const Found found = Locate(command.job);
  uint64_t batch = BatchOfRef(command.job);
  if (found.error != nullptr) {
    return Refuse(request, found.code, found.error, batch);
  }
  if (found.finished) {
    JobView view = FinishedView(*found.finished, &batch);
    const std::optional<ModelJob>& story = done_.at(*found.finished).story;
    if (story) {
      view.history = story->events;
    }
    if (story && story->spec->payload.size() <= limits::kInlinePayloadBytesMax) {
      view.payload = story->spec->payload;
    }
    return Answer(request, std::move(view), batch);
  }
  const ModelJob& job = jobs_.at(found.id);
  JobView view = ViewOf(job, job.state);
  view.payload = job.spec->payload;
  view.history = job.events;
  Answer(request, std::move(view), batch);
}

void Model::Do(RequestId request, const engine::GetStats&) {
  Answer(request, Stats(), 0);
}

void Model::Do(RequestId request, const engine::ListQueues& command) {
  engine::QueueList list;
  for (const auto& [name, queue] : queues_) {
    if (!queue.stored || (command.queue && *command.queue != name)) {
      continue;
    }
    list.queues.push_back(ViewOfQueue(name));
  }
  if (command.queue && list.queues.empty()) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  if (!engine::ParseListCursor(command.cursor).ok()) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_cursor", 0);
  }
  Answer(request, std::move(list), 0);
}

engine::QueueView Model::ViewOfQueue(const std::string& name) const {
  const ModelQueue& queue = queues_.at(name);
  engine::QueueView view{.name = name,
                         .concurrency = SettingsFor(name).concurrency,
                         .max_jobs = SettingsFor(name).max_jobs,
                         .rate = SettingsFor(name).rate,
                         .enqueued = queue.enqueued,
                         .acked = queue.acked,
                         .cancelled = queue.cancelled,
                         .pauses = queue.pauses};
  for (const auto& [id, job] : jobs_) {
    if (job.spec->queue == name) {
      view.scheduled += job.state == JobState::kScheduled ? 1 : 0;
      view.ready += job.state == JobState::kReady ? 1 : 0;
      view.urgent += job.state == JobState::kReady && job.priority < 1024 ? 1 : 0;
      view.leased += job.state == JobState::kLeased ? 1 : 0;
      view.dead += job.state == JobState::kDead ? 1 : 0;
    }
  }
  if (queue.pause) {
    view.paused = true;
    view.pause_length = queue.pause->length;
    if (queue.pause->length) {
      view.pause_left = std::max(queue.pause->end - now_.boot, Millis(0));
    }
  }
  return view;
}

engine::StatsView Model::Stats() const {
  engine::StatsView view = counters_;
  for (const auto& [id, job] : jobs_) {
    view.scheduled += job.state == JobState::kScheduled ? 1 : 0;
    view.ready += job.state == JobState::kReady ? 1 : 0;
    view.leased += job.state == JobState::kLeased ? 1 : 0;
    view.dead += job.state == JobState::kDead ? 1 : 0;
    view.urgent += job.state == JobState::kReady && job.priority < 1024 ? 1 : 0;
    if (job.state == JobState::kScheduled && DueByNow(job) > now_.wall) {
      view.next_due = std::min(view.next_due.value_or(WallTime::max()), DueByNow(job));
    }
  }
  for (const auto& [name, queue] : queues_) {
    view.queues += queue.stored ? 1 : 0;
  }
  view.waiting = waiters_.size();
  view.draining = draining_;
  view.epoch = epoch;
  return view;
}

JobView Model::ViewOf(const ModelJob& job, JobState state) const {
  JobView view;
  view.id = job.id;
  view.queue = job.spec->queue;
  view.key = job.spec->key;
  view.state = state;
  view.due_kind = job.due_kind;
  view.due_step = state == JobState::kDead || state == JobState::kFinished
                      ? Millis(0)
                      : DueByNow(job) - job.due;
  view.due = job.due + view.due_step;
  view.created = job.created;
  view.priority = job.priority;
  view.lease = job.lease;
  view.attempt = job.attempts + (state == JobState::kLeased ? 1 : 0);
  view.max_attempts = job.max_attempts;
  view.expires_after = job.spec->expires_after;
  view.last_error = job.last_error;
  view.payload_bytes = job.spec->payload.size();
  view.delay = DelayOf(*job.spec);
  view.fingerprint = job.spec->key.empty() ? 0 : FingerprintOf(*job.spec);
  view.timeouts = job.timeouts;
  view.releases = job.releases;
  view.buries = job.buries;
  view.kicks = job.kicks;
  view.reserves =
      job.timeouts + job.releases + job.buries + job.returns + (state == JobState::kLeased ? 1 : 0);
  if (state == JobState::kScheduled) {
    view.time_left =
        std::max(job.on_boot_clock ? job.boot_due - now_.boot : job.due - now_.wall, Millis(0));
  }
  if (state == JobState::kLeased) {
    view.time_left = job.lease_end - now_.boot;
    const Millis set_by = now_.wall + *view.time_left - job.lease_end_wall;
    view.lease_expires =
        std::clamp(job.lease_end_wall + std::chrono::round<std::chrono::seconds>(set_by),
                   WallTime(),
                   WallFromMillis(limits::kWallMsMax));
    view.lease_ends = job.lease_end;
    view.client = job.client;
  }
  return view;
}

std::optional<Micros> Model::UntilNextEvent(const Now& now) const {
  std::optional<Micros> wait;
  const auto consider = [&wait](Micros until) {
    const Micros bounded = std::max(until, Micros(0));
    wait = wait ? std::min(*wait, bounded) : bounded;
  };
  for (const auto& [id, job] : jobs_) {
    if (job.state == JobState::kScheduled) {
      // With little memory one ready job of the queue is enough.
      const Millis late(Follows() ? 1 : 0);
      if (!Follows() || !HasDueJob(job.spec->queue)) {
        consider(UntilDue(job, now) + late);
      }
    } else if (job.state == JobState::kLeased) {
      consider(job.lease_end - now.exact_boot());
    }
  }
  for (const auto& [id, waiter] : waiters_) {
    consider(waiter.end - now.exact_boot());
  }
  for (const auto& [name, queue] : queues_) {
    if (queue.pause && queue.pause->length) {
      consider(queue.pause->end - now.exact_boot());
    }
    if (queue.rate_timer && !queue.waiters.empty()) {  // whom it is for may have gone meanwhile
      consider(*queue.rate_timer - now.exact_boot());
    }
  }
  return wait;
}

void Model::Restart(const engine::EngineOptions& options, uint64_t next_id, const Now& now) {
  options_ = options;
  now_ = now;
  key_retention_ = engine::KeyRetention(now);
  clock_note_ = engine::ClockNote(now);
  clock_note_.Restore(noted_wall);
  hand_ = now.wall;
  waiters_.clear();
  open_peeks_.clear();
  to_serve_.clear();
  answers_.clear();
  std::erase_if(queues_, [](const auto& queue) { return !queue.second.stored; });
  for (auto& [name, queue] : queues_) {
    queue.waiters.clear();
    queue.enqueued = 0;
    queue.acked = 0;
    queue.cancelled = 0;
    queue.pauses = 0;
    queue.rate_timer.reset();
    queue.bucket = {};
    queue.bucket.SetCap(SettingsFor(name).rate, now_.boot);
  }
  gone_.clear();
  next_id_ = next_id;
  epoch = engine::EpochAfter(epoch, engine::ShownAtStart(now.wall, options.machine_wall));
  if (offsets_boot_ != BootId()) {
    wall_offsets_ = {};
    offsets_boot_ = BootId();
  }
  lease_sequence_ = 0;
  told_leases_.clear();
  unseen_hand_outs_.clear();
  settled_ = false;
  draining_ = false;
  refuses_enqueues = false;
  counters_ = {};
  RestorePauses();
  std::vector<ModelJob*> pending;
  for (auto& [id, job] : jobs_) {
    job.on_boot_clock = job.due_kind == DueKind::kRelative && job.boot_id == BootId();
    job.rounded_up = Micros(0);
    if (job.state != JobState::kDead) {
      pending.push_back(&job);
    }
  }
  std::ranges::sort(
      pending, {}, [](const ModelJob* job) { return std::pair(job->place, job->id); });
  for (ModelJob* job : pending) {
    Place(job);
  }
}

}  // namespace delayd::simulation

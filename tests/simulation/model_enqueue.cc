// New jobs: what is refused, what a key makes the same, and that a batch is all or nothing.
#include <algorithm>

#include "base/coding.h"
#include "base/limits.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

namespace {

uint32_t AttemptsOf(const JobSpec& spec) {
  return spec.past != nullptr ? spec.past->attempts : 0;
}

std::string ErrorOf(const JobSpec& spec) {
  return spec.past != nullptr ? spec.past->last_error : std::string();
}

uint32_t PriorityOf(const JobSpec& spec) {
  return spec.priority.value_or(limits::kPriorityDefault);
}

uint64_t BroughtAlong(const JobSpec& spec) {
  return spec.past != nullptr ? spec.past->fingerprint : 0;
}

}  // namespace

bool SameContent(const JobSpec& a, const JobSpec& b) {
  if (BroughtAlong(a) != 0 || BroughtAlong(b) != 0) {
    return FingerprintOf(a) == FingerprintOf(b);
  }
  const auto due_of = [](const JobSpec& spec) {
    const auto* at = std::get_if<DueAt>(&spec.due);
    return at != nullptr ? std::pair(true, ToMillis(at->at))
                         : std::pair(false, int64_t{std::get<DueAfter>(spec.due).delay.count()});
  };
  return due_of(a) == due_of(b) && a.payload == b.payload && PriorityOf(a) == PriorityOf(b) &&
         a.lease == b.lease && a.max_attempts == b.max_attempts &&
         a.expires_after == b.expires_after && a.buried == b.buried &&
         a.touch_delay == b.touch_delay && AttemptsOf(a) == AttemptsOf(b) &&
         ErrorOf(a) == ErrorOf(b);
}

uint64_t FingerprintOf(const JobSpec& spec) {
  if (BroughtAlong(spec) != 0) {
    return BroughtAlong(spec);
  }
  std::string content;
  const auto add = [&content](bool has, uint64_t value) {
    AppendU8(&content, has ? 1 : 0);
    AppendU64(&content, has ? value : 0);
  };
  const auto add_millis = [&add](const std::optional<Millis>& value) {
    add(value.has_value(), static_cast<uint64_t>(value.value_or(Millis(0)).count()));
  };
  const auto* at = std::get_if<DueAt>(&spec.due);
  AppendU8(&content, at != nullptr ? 1 : 0);
  AppendU64(&content,
            static_cast<uint64_t>(at != nullptr ? ToMillis(at->at)
                                                : std::get<DueAfter>(spec.due).delay.count()));
  add(PriorityOf(spec) != limits::kPriorityDefault, PriorityOf(spec));
  add(spec.max_attempts.has_value(), spec.max_attempts.value_or(0));
  add_millis(spec.lease);
  add_millis(spec.expires_after);
  if (spec.buried) {
    AppendU8(&content, 1);
  }
  if (AttemptsOf(spec) != 0 || !ErrorOf(spec).empty() || spec.touch_delay) {
    AppendU8(&content, 2);
    add_millis(spec.touch_delay);
    AppendU32(&content, AttemptsOf(spec));
    content += ErrorOf(spec);
  }
  return Fingerprint(spec.payload, Fingerprint(content));
}

std::optional<Millis> DelayOf(const JobSpec& spec) {
  const auto* after = std::get_if<DueAfter>(&spec.due);
  return spec.touch_delay || after == nullptr ? spec.touch_delay : std::optional(after->delay);
}

const char* Model::ValidateDue(const DueSpec& due) const {
  if (const auto* after = std::get_if<DueAfter>(&due)) {
    const int64_t delay = after->delay.count();
    return delay < 0 || delay > limits::kDelayMsMax ||
                   ToMillis(now_.wall) + delay > limits::kWallMsMax
               ? "invalid_delay"
               : nullptr;
  }
  const int64_t at = ToMillis(std::get<DueAt>(due).at);
  return at < 0 || at > limits::kWallMsMax ? "invalid_due" : nullptr;
}

const char* Model::Validate(const JobSpec& spec, StatusCode* code) const {
  *code = StatusCode::kInvalidArgument;
  if (spec.queue.empty() || spec.queue.size() > limits::kQueueNameBytesMax ||
      spec.queue[0] == '-' || spec.queue.find(' ') != std::string::npos) {
    return "invalid_queue";
  }
  if (spec.key.size() > limits::kKeyBytesMax ||
      spec.key.find_first_of("\n\x80") != std::string::npos) {
    return "invalid_key";
  }
  if (spec.payload.size() > options_.payload_bytes_max) {
    *code = StatusCode::kResourceExhausted;
    return "payload_too_large";
  }
  if (const char* reason = ValidateDue(spec.due)) {
    return reason;
  }
  if (spec.lease && (spec.lease->count() < 1 || spec.lease->count() > limits::kLeaseMsMax)) {
    return "invalid_lease";
  }
  if (spec.expires_after &&
      (spec.expires_after->count() < 1 || spec.expires_after->count() > limits::kDelayMsMax)) {
    return "invalid_expires_after";
  }
  if (spec.touch_delay &&
      (spec.touch_delay->count() < 0 || spec.touch_delay->count() > limits::kDelayMsMax)) {
    return "invalid_delay";
  }
  if (spec.past != nullptr && (spec.past->history.size() > limits::kJobEventsMax ||
                               spec.past->kicks > limits::kPastFigureMax)) {
    return "invalid_history";
  }
  if (spec.on_conflict != OnConflict::kFail && spec.key.empty()) {
    return "invalid_on_conflict";
  }
  if (spec.on_conflict == OnConflict::kReplace && spec.buried) {
    return "invalid_on_conflict";
  }
  return nullptr;
}

// Every stored job counts, dead ones too.
const char* Model::CheckQuotas(const engine::Enqueue& command,
                               const std::vector<PlannedJob>& plan) const {
  std::map<std::string, uint64_t> of_queue;
  uint64_t of_user = 0;
  for (const auto& [id, job] : jobs_) {
    ++of_queue[job.spec->queue];
    of_user += job.user == command.user ? 1U : 0U;
  }
  bool any = false;
  for (size_t i = 0; i < command.jobs.size(); ++i) {
    if (!plan[i].is_new()) {
      continue;
    }
    any = true;
    ++of_user;
    const uint32_t most = SettingsFor(command.jobs[i].queue).max_jobs;
    if (++of_queue[command.jobs[i].queue] > most && most != 0) {
      return "queue_full";
    }
  }
  return any && command.user_jobs_max != 0 && of_user > command.user_jobs_max ? "user_full"
                                                                              : nullptr;
}

JobView Model::Create(const std::shared_ptr<const JobSpec>& spec,
                      JobId id,
                      const std::string& user) {
  ModelJob job;
  job.user = user;
  job.id = id;
  job.spec = spec;
  SetDue(&job, spec->due);
  job.created = now_.wall;
  job.priority = PriorityOf(*spec);
  job.max_attempts = spec->max_attempts.value_or(SettingsFor(spec->queue).max_attempts);
  job.lease = spec->lease.value_or(SettingsFor(spec->queue).lease);
  job.attempts = AttemptsOf(*spec);
  job.last_error = ErrorOf(*spec);
  if (spec->past != nullptr) {
    job.created = std::min(spec->past->created.value_or(now_.wall), now_.wall);
    job.timeouts = spec->past->timeouts;
    job.releases = spec->past->releases;
    job.buries = spec->past->buries;
    job.kicks = spec->past->kicks;
    job.events = spec->past->history;
  }
  job.place = std::max(job.due, mark);
  job.batch = open_batch;
  QueueOf(spec->queue).stored = true;
  ++QueueOf(spec->queue).enqueued;
  if (!spec->key.empty()) {
    keys_[{spec->queue, spec->key}] = {.id = id, .spec = spec, .batch = open_batch};
  }
  ModelJob& placed = jobs_[id] = job;
  if (spec->buried) {
    placed.state = JobState::kDead;
    placed.place = now_.wall;
    placed.last_error = spec->past != nullptr ? ErrorOf(*spec) : "enqueued as buried";
  } else {
    Place(&placed);
  }
  ++counters_.enqueued;
  return ViewOf(placed, placed.state);
}

JobView Model::Replace(const std::shared_ptr<const JobSpec>& spec, ModelKey* key) {
  ModelJob& job = jobs_.at(key->id);
  if (!SameContent(*key->spec, *spec)) {
    AddEvent(&job, JobEvent::Kind::kReplaced, {}, {});
  }
  job.spec = spec;
  SetDue(&job, spec->due);
  job.priority = PriorityOf(*spec);
  job.attempts = AttemptsOf(*spec);
  job.last_error = ErrorOf(*spec);
  job.max_attempts = spec->max_attempts.value_or(SettingsFor(spec->queue).max_attempts);
  job.lease = spec->lease.value_or(SettingsFor(spec->queue).lease);
  job.place = std::max(job.due, mark);
  job.batch = open_batch;
  key->spec = spec;
  key->batch = open_batch;
  Place(&job);
  ++counters_.rescheduled;
  return ViewOf(job, job.state);
}

JobView Model::FinishedView(const DoneKey& key, uint64_t* batch) const {
  const ModelDone& done = done_.at(key);
  *batch = std::max(*batch, done.batch);
  JobView view;
  if (done.story) {
    view = ViewOf(*done.story, JobState::kFinished);
    view.reserves += done.cancelled ? 0 : 1;
  }
  view.id = key.second;
  view.queue = done.queue;
  view.key = done.key;
  view.state = JobState::kFinished;
  view.due = done.due;
  view.created = done.created;
  view.attempt = done.attempts;
  view.finished = key.first;
  view.outcome = done.cancelled ? "cancelled" : "acked";
  return view;
}

const ModelKey* Model::FindKey(const std::string& queue, const std::string& key) const {
  const auto found = keys_.find({queue, key});
  if (found == keys_.end()) {
    return nullptr;
  }
  const ModelKey& known = found->second;
  const bool is_free = known.finished &&
                       !key_retention_.IsKept(
                           known.finished_at, known.expiry, SettingsFor(queue).key_retention, now_);
  return is_free ? nullptr : &known;
}

// A job whose key is known: whether it is refused, taken for the one that is there, or put in its
// place.
std::optional<Model::Refusal> Model::PlanUnderKey(const ModelKey& key,
                                                  const JobSpec& spec,
                                                  PlannedJob* planned,
                                                  uint64_t* batch) const {
  const bool same = SameContent(*key.spec, spec);
  if (key.finished) {
    planned->existing = same && spec.on_conflict == OnConflict::kFail ? &key : nullptr;
    *batch = std::max(*batch, planned->existing != nullptr ? key.batch : 0);
    return std::nullopt;
  }
  if (!same && spec.on_conflict == OnConflict::kFail) {
    return Refusal{StatusCode::kAlreadyExists, "key_conflict", key.batch};
  }
  const ModelJob& job = jobs_.at(key.id);
  planned->existing = &key;
  planned->replaces = spec.on_conflict == OnConflict::kReplace;
  *batch = std::max(*batch, job.batch);
  if (planned->replaces && job.state == JobState::kLeased) {
    return Refusal{StatusCode::kFailedPrecondition, "leased", job.batch};
  }
  return std::nullopt;
}

std::optional<Model::Refusal> Model::Plan(const engine::Enqueue& command,
                                          std::vector<PlannedJob>* plan,
                                          uint64_t* batch) const {
  if (command.jobs.empty() || command.jobs.size() > limits::kEnqueueBatchJobsMax) {
    return Refusal{StatusCode::kInvalidArgument, "invalid_batch"};
  }
  std::map<QueueKey, size_t> first_with_key;
  for (size_t i = 0; i < command.jobs.size(); ++i) {
    const JobSpec& spec = command.jobs[i];
    PlannedJob& planned = plan->emplace_back();
    StatusCode code = StatusCode::kOk;
    if (const char* reason = Validate(spec, &code)) {
      return Refusal{code, reason};
    }
    if (spec.key.empty()) {
      continue;
    }
    const auto [first, is_first] = first_with_key.emplace(QueueKey{spec.queue, spec.key}, i);
    if (!is_first) {
      const JobSpec& earlier = command.jobs[first->second];
      if (!SameContent(earlier, spec) || earlier.on_conflict != spec.on_conflict) {
        return Refusal{StatusCode::kAlreadyExists, "key_conflict"};
      }
      planned.same_as = first->second;
    } else if (const ModelKey* key = FindKey(spec.queue, spec.key)) {
      if (const auto refusal = PlanUnderKey(*key, spec, &planned, batch)) {
        return refusal;
      }
    }
  }
  const auto is_new = [](const PlannedJob& job) { return job.is_new(); };
  if (draining_ && std::ranges::any_of(*plan, is_new)) {
    return Refusal{StatusCode::kResourceExhausted, "draining"};
  }
  const auto needs_room = [](const PlannedJob& job) { return job.is_new() || job.replaces; };
  if (refuses_enqueues && std::ranges::any_of(*plan, needs_room)) {
    return Refusal{StatusCode::kResourceExhausted, "disk_nearly_full"};
  }
  if (const char* reason = CheckQuotas(command, *plan)) {
    return Refusal{StatusCode::kResourceExhausted, reason};
  }
  return std::nullopt;
}

engine::Enqueued Model::CarryOut(const engine::Enqueue& command,
                                 const std::vector<PlannedJob>& plan,
                                 uint64_t* batch) {
  engine::Enqueued result;
  for (size_t i = 0; i < plan.size(); ++i) {
    const PlannedJob& planned = plan[i];
    const JobSpec& spec = command.jobs[i];
    if (planned.is_new()) {
      *batch = open_batch;
      result.items.push_back(
          {.job = Create(std::make_shared<const JobSpec>(spec), JobId{next_id_++}, command.user),
           .existed = false});
      continue;
    }
    if (planned.replaces) {
      *batch = open_batch;
      result.items.push_back(
          {.job = Replace(std::make_shared<const JobSpec>(spec), &keys_.at({spec.queue, spec.key})),
           .existed = true});
      continue;
    }
    ++counters_.existed;
    JobView view;
    if (planned.same_as) {
      view = result.items[*planned.same_as].job;
    } else if (planned.existing->finished) {
      view = FinishedView({planned.existing->finished_at, planned.existing->id}, batch);
    } else {
      const ModelJob& job = jobs_.at(planned.existing->id);
      view = ViewOf(job, job.state);
    }
    result.items.push_back({.job = std::move(view), .existed = true});
  }
  return result;
}

engine::EnqueuedIds Model::IdsOf(const engine::Enqueued& result,
                                 const std::vector<PlannedJob>& plan) {
  engine::EnqueuedIds ids;
  for (size_t i = 0; i < plan.size(); ++i) {
    const JobView& job = result.items[i].job;
    if (plan[i].same_as) {
      ids.items.push_back(ids.items[*plan[i].same_as]);
      ids.items.back().existed = true;
      continue;
    }
    ids.items.push_back({.id = job.id, .existed = result.items[i].existed});
    if (plan[i].existing != nullptr &&
        (job.state == JobState::kDead || job.state == JobState::kFinished)) {
      ids.items.back().ended = job.state;
      ids.items.back().cancelled = job.outcome == "cancelled";
    }
  }
  return ids;
}

// What is refused is refused before anything is done: all or nothing (P8).
void Model::Do(RequestId request, const engine::Enqueue& command) {
  uint64_t batch = 0;
  std::vector<PlannedJob> plan;
  if (const auto refusal = Plan(command, &plan, &batch)) {
    const std::string_view reason = refusal->reason;
    counters_.quota_refusals += reason == "queue_full" || reason == "user_full" ? 1U : 0U;
    return Refuse(request, refusal->code, reason, refusal->batch);
  }
  engine::Enqueued result = CarryOut(command, plan, &batch);
  if (command.brief) {
    return Answer(request, IdsOf(result, plan), batch);
  }
  Answer(request, std::move(result), batch);
}

}  // namespace delayd::simulation

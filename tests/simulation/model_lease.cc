// Hand-out, waiting, how a lease ends, and the passing of time.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"
#include "base/coding.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

namespace {

// Of an end that tells none the last one stays.
void NoteError(ModelJob* job, std::string_view error) {
  if (!error.empty()) {
    job->last_error = Utf8Front(error, limits::kLastErrorBytesMax);
  }
}

}  // namespace

ModelJob* Model::BestReady(const std::vector<std::string>& queues) {
  ModelJob* best = nullptr;
  const auto order = [](const ModelJob& job) {
    return std::tuple(job.priority, job.place, job.id);
  };
  for (auto& [id, job] : jobs_) {
    if (job.state == JobState::kReady && MayHandOut(job.spec->queue) &&
        std::ranges::find(queues, job.spec->queue) != queues.end() &&
        (best == nullptr || order(job) < order(*best))) {
      best = &job;
    }
  }
  return best;
}

engine::Leased Model::HandOut(const engine::Lease& command, uint64_t* batch) {
  engine::Leased leased;
  while (leased.jobs.size() < command.count) {
    ModelJob* job = BestReady(command.queues);
    if (job == nullptr) {
      break;
    }
    // Right before the hand-out: never early (P2), whatever the wall clock did since it fired.
    const Millis late = Lateness(*job, now_);
    if (late < Millis(0)) {
      Place(job);
      continue;
    }
    if (job->spec->expires_after && late > *job->spec->expires_after) {
      Expire(job);
      *batch = open_batch;
      continue;
    }
    *batch = std::max(*batch, job->batch);
    QueueOf(job->spec->queue).bucket.Take(now_.boot);
    leased.jobs.push_back(Grant(job, command.lease, command.client, late));
  }
  return leased;
}

JobView Model::Grant(ModelJob* job,
                     std::optional<Millis> lease,
                     const std::string& client,
                     Millis late) {
  job->state = JobState::kLeased;
  job->rounded_up = Micros(0);
  job->client = client;
  job->lease_sequence = ++lease_sequence_;
  job->lease_end = now_.boot + lease.value_or(job->lease);
  job->lease_end_wall = now_.wall + lease.value_or(job->lease);
  job->timer_rank = next_rank_++;
  ++counters_.handed_out;
  JobView view = ViewOf(*job, JobState::kLeased);
  view.payload = job->spec->payload;
  view.lease_token = LeaseToken{.job = job->id, .epoch = epoch, .sequence = job->lease_sequence};
  view.lateness = late;
  return view;
}

void Model::Do(RequestId request, const engine::Lease& command) {
  if (command.queues.empty() || std::ranges::count(command.queues, "") > 0) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_queue", 0);
  }
  if (command.count < 1 || command.count > limits::kLeaseCountMax) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_count", 0);
  }
  if (command.wait.count() < 0 || command.wait.count() > limits::kLeaseWaitMsMax) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_wait", 0);
  }
  if (command.client.size() > limits::kClientNameBytesMax) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_client", 0);
  }
  if (command.lease &&
      (command.lease->count() < 1 || command.lease->count() > limits::kLeaseMsMax)) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_lease", 0);
  }
  if (Follows()) {
    return OpenLease(request, command);
  }
  for (const std::string& queue : command.queues) {
    ServeQueue(queue);  // who has waited longer comes first
  }
  uint64_t batch = 0;
  engine::Leased leased = HandOut(command, &batch);
  if (!leased.jobs.empty() || command.wait.count() == 0) {
    return Answer(request, std::move(leased), batch);
  }
  const uint64_t id = next_waiter_++;
  for (const std::string& queue : command.queues) {
    QueueOf(queue).waiters.push_back(id);
    WatchRate(queue);
  }
  waiters_[id] = {.request = request,
                  .command = command,
                  .end = now_.boot + command.wait,
                  .timer_rank = next_rank_++};
}

void Model::RemoveWaiter(uint64_t waiter) {
  for (const std::string& queue : waiters_.at(waiter).command.queues) {
    std::erase(QueueOf(queue).waiters, waiter);
  }
  waiters_.erase(waiter);
}

void Model::Do(RequestId, const engine::Abandon& command) {
  for (const auto& [id, waiter] : waiters_) {
    if (waiter.request == command.waiting) {
      return RemoveWaiter(id);
    }
  }
}

void Model::Do(RequestId, const engine::EndWait& command) {
  for (auto& [id, waiter] : waiters_) {
    if (waiter.request != command.waiting) {
      continue;
    }
    if (!Follows()) {
      return WaitOver(id);
    }
    // From now on it is as one that does not wait.
    waiter.command.wait = Millis(0);
    waiter.end = now_.boot;
    waiter.settled = settled_;
  }
}

void Model::WaitOver(uint64_t waiter) {
  const RequestId request = waiters_.at(waiter).request;
  RemoveWaiter(waiter);
  Answer(request, engine::Leased{}, 0);
}

void Model::TakeBack(const engine::Leased& leased, const Now& now) {
  SetNow(now);
  for (const JobView& view : leased.jobs) {
    if (ModelJob* job = Holding(*view.lease_token)) {
      RoomMade(*job);
      Place(job);
    }
  }
}

// Nobody gets a job of a queue for which somebody has waited longer.
uint64_t Model::NextToServe(const std::string& queue) {
  uint64_t id = QueueOf(queue).waiters.front();
  const auto has_older = [&](const std::string& name) {
    return QueueOf(name).waiters.front() < id && BestReady({name}) != nullptr;
  };
  while (true) {
    const std::vector<std::string>& queues = waiters_.at(id).command.queues;
    const auto other = std::ranges::find_if(queues, has_older);
    if (other == queues.end()) {
      return id;
    }
    id = QueueOf(*other).waiters.front();
  }
}

void Model::ServeQueue(const std::string& queue) {
  if (Follows()) {
    return;
  }
  while (!QueueOf(queue).waiters.empty() && BestReady({queue}) != nullptr) {
    const uint64_t id = NextToServe(queue);
    uint64_t batch = 0;
    engine::Leased leased = HandOut(waiters_.at(id).command, &batch);
    if (leased.jobs.empty()) {
      continue;  // all of it had expired or was not due
    }
    const RequestId request = waiters_.at(id).request;
    RemoveWaiter(id);
    Answer(request, std::move(leased), batch);
  }
  WatchRate(queue);
}

ModelJob* Model::Holding(const LeaseToken& token) {
  const auto found = jobs_.find(token.job);
  const bool held = found != jobs_.end() && token.epoch == epoch &&
                    found->second.state == JobState::kLeased &&
                    found->second.lease_sequence == token.sequence;
  return held ? &found->second : nullptr;
}

JobView Model::AckOne(ModelJob* job) {
  ++job->attempts;
  AddEvent(job, JobEvent::Kind::kAcked, job->client, {});
  JobView view = ViewOf(*job, JobState::kFinished);
  view.finished = now_.wall;
  view.outcome = "acked";
  ++view.reserves;
  ++counters_.acked;
  ++QueueOf(job->spec->queue).acked;
  Finish(*job, /*cancelled=*/false);
  return view;
}

void Model::Do(RequestId request, const engine::Ack& command) {
  ModelJob* job = Holding(command.token);
  if (job == nullptr) {
    return Refuse(request, StatusCode::kFailedPrecondition, "lease_lost", 0);
  }
  AnswerJob(request, command.brief, AckOne(job));
}

void Model::Do(RequestId request, const engine::AckMany& command) {
  if (command.tokens.empty()) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_count", 0);
  }
  engine::AckedMany result;
  for (const LeaseToken& token : command.tokens) {
    if (ModelJob* job = Holding(token)) {
      AckOne(job);
      ++result.acked;
    } else {
      result.lost.push_back(token);
    }
  }
  const uint64_t batch = result.acked > 0 ? open_batch : 0;
  Answer(request, std::move(result), batch);
}

void Model::Do(RequestId request, const engine::Nack& command) {
  ModelJob* job = Holding(command.token);
  if (job == nullptr) {
    return Refuse(request, StatusCode::kFailedPrecondition, "lease_lost", 0);
  }
  if (const char* reason = command.delay ? ValidateDue(DueAfter{*command.delay}) : nullptr) {
    return Refuse(request, StatusCode::kInvalidArgument, reason, 0);
  }
  ++job->releases;
  AddEvent(job, JobEvent::Kind::kNacked, job->client, command.error);
  job->priority = command.priority.value_or(job->priority);
  EndLease(job, command.delay, command.error, command.counts_as_attempt);
  ++counters_.nacked;
  Answer(request, ViewOf(*job, job->state), open_batch);
}

void Model::Do(RequestId request, const engine::Bury& command) {
  ModelJob* job = Holding(command.token);
  if (job == nullptr) {
    return Refuse(request, StatusCode::kFailedPrecondition, "lease_lost", 0);
  }
  ++job->attempts;
  ++job->buries;
  AddEvent(job, JobEvent::Kind::kBuried, job->client, command.error);
  job->priority = command.priority.value_or(job->priority);
  Die(job, command.error);
  ++counters_.buried;
  Answer(request, ViewOf(*job, JobState::kDead), open_batch);
}

void Model::Do(RequestId request, const engine::Extend& command) {
  ModelJob* job = Holding(command.token);
  if (job == nullptr) {
    return Refuse(request, StatusCode::kFailedPrecondition, "lease_lost", 0);
  }
  if (command.lease &&
      (command.lease->count() < 1 || command.lease->count() > limits::kLeaseMsMax)) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_lease", 0);
  }
  job->lease_end = now_.boot + command.lease.value_or(job->lease);
  job->lease_end_wall = now_.wall + command.lease.value_or(job->lease);
  job->timer_rank = next_rank_++;
  Answer(request, ViewOf(*job, JobState::kLeased), 0);
}

// initial * factor^(attempt - 1), at most max, less a jitter that depends on job and attempt.
Millis Model::Backoff(const ModelJob& job) const {
  const engine::Backoff& backoff = SettingsFor(job.spec->queue).backoff;
  const double wait = static_cast<double>(backoff.initial.count()) *
                      std::pow(backoff.factor, job.attempts == 0 ? 0.0 : job.attempts - 1.0);
  const double capped = std::min(wait, static_cast<double>(backoff.max.count()));
  std::string seed;
  AppendU64(&seed, ToInt(job.id));
  AppendU32(&seed, job.attempts);
  const double jitter = backoff.jitter * static_cast<double>(Fingerprint(seed) % 1024) / 1024;
  return Millis(static_cast<int64_t>(capped * (1 - jitter)));
}

void Model::EndLease(ModelJob* job,
                     std::optional<Millis> delay,
                     std::string_view error,
                     bool counts) {
  job->attempts += counts ? 1 : 0;
  if (counts && job->max_attempts != 0 && job->attempts >= job->max_attempts) {
    return Die(job, error);
  }
  NoteError(job, error);
  RoomMade(*job);
  const bool expired = job->events.back().kind == JobEvent::Kind::kLeaseExpired;
  const Millis wait = delay.value_or(expired ? Millis(0) : Backoff(*job));
  if (delay || DueWithin(*job, wait)) {
    SetDue(job, DueAfter{wait});
    job->place = std::max(job->due, mark);
  }
  job->batch = open_batch;
  Place(job);
}

// One that was handed out by its name may not be due before its next attempt would be.
bool Model::DueWithin(const ModelJob& job, Millis wait) const {
  if (job.on_boot_clock) {
    return BootDue(job) <= now_.exact_boot() + wait;
  }
  return job.due + Millis(job.due_kind == DueKind::kRelative ? 1 : 0) <= now_.wall + wait;
}

void Model::Die(ModelJob* job, std::string_view error) {
  NoteError(job, error);
  RoomMade(*job);
  job->state = JobState::kDead;
  job->place = now_.wall;
  job->batch = open_batch;
  ++counters_.died;
}

// Nobody took it in time, or who did has left no trace.
void Model::Expire(ModelJob* job) {
  Die(job, "expired: later than expires_after when it was to be handed out");
  AddEvent(job, JobEvent::Kind::kDied, {}, job->last_error);
}

std::vector<Model::Due> Model::AllDue() const {
  using Wheel = Due::Wheel;
  std::vector<Due> due;
  for (const auto& [id, job] : jobs_) {
    if (job.state == JobState::kScheduled && IsDue(job, now_)) {
      const Micros tick =
          job.on_boot_clock ? BootDue(job).time_since_epoch() : WallDue(job).time_since_epoch();
      const Wheel wheel = job.on_boot_clock ? Wheel::kBoot : Wheel::kWall;
      due.push_back({.wheel = wheel, .tick = tick, .rank = job.timer_rank, .job = id});
    } else if (job.state == JobState::kLeased && job.lease_end <= now_.boot) {
      const Micros tick = job.lease_end.time_since_epoch();
      due.push_back({.wheel = Wheel::kLeases, .tick = tick, .rank = job.timer_rank, .job = id});
    }
  }
  for (const auto& [id, waiter] : waiters_) {
    if (waiter.end <= now_.boot && !Follows()) {  // else the answer is followed
      const Micros tick = waiter.end.time_since_epoch();
      due.push_back({.tick = tick, .rank = waiter.timer_rank, .waiter = id});
    }
  }
  for (const auto& [name, queue] : queues_) {
    if (queue.pause && queue.pause->length && queue.pause->end <= now_.boot) {
      const Micros tick = queue.pause->end.time_since_epoch();
      due.push_back({.tick = tick, .rank = queue.pause->timer_rank, .paused = name});
    }
    if (queue.rate_timer && *queue.rate_timer <= now_.boot) {
      const Micros tick = queue.rate_timer->time_since_epoch();
      due.push_back({.tick = tick, .rank = queue.rate_rank, .rated = name});
    }
  }
  std::ranges::sort(
      due, {}, [](const Due& one) { return std::tuple(one.wheel, one.tick, one.rank); });
  return due;
}

void Model::Fire(const Due& due) {
  if (!due.paused.empty()) {
    QueueOf(due.paused).pause.reset();
    ServeSoon(due.paused);
  } else if (!due.rated.empty()) {
    QueueOf(due.rated).rate_timer.reset();
    ServeSoon(due.rated);
  } else if (due.waiter != 0) {
    WaitOver(due.waiter);
  } else if (ModelJob& job = jobs_.at(due.job); job.state == JobState::kLeased) {
    ++counters_.lease_expired;
    ++job.timeouts;
    const char* error = "lease expired before an ack";
    AddEvent(&job, JobEvent::Kind::kLeaseExpired, job.client, error);
    EndLease(&job, std::nullopt, error, /*counts=*/true);
  } else {
    MakeReady(&job);
  }
}

void Model::Advance(const Now& now) {
  SetNow(now);
  settled_ = false;
  if (now.wall < hand_) {
    for (auto& [id, job] : jobs_) {
      const bool fired = job.state == JobState::kReady && !job.on_boot_clock;
      if (fired && job.place > now.wall && job.due + Millis(1) > now.wall) {
        job.state = JobState::kScheduled;
        job.waits_again = true;
        job.timer_rank = next_rank_++;
      }
    }
  }
  hand_ = now.wall;
  for (const Due& due : AllDue()) {
    Fire(due);
  }
  for (const std::string& queue : std::exchange(to_serve_, {})) {
    ServeQueue(queue);
  }
}

}  // namespace delayd::simulation

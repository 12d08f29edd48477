// Kicks, peeks, and the hand-out of one job by name.
#include <algorithm>

#include "base/limits.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

std::vector<ModelJob*> Model::InState(const std::string& queue, JobState state) {
  std::vector<ModelJob*> found;
  for (auto& [id, job] : jobs_) {
    if (job.spec->queue == queue && job.state == state) {
      found.push_back(&job);
    }
  }
  std::ranges::sort(found, {}, [](const ModelJob* job) { return std::pair(job->place, job->id); });
  return found;
}

void Model::Do(RequestId request, const engine::LeaseJob& command) {
  if (command.lease &&
      (command.lease->count() < 1 || command.lease->count() > limits::kLeaseMsMax)) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_lease", 0);
  }
  if (command.client.size() > limits::kClientNameBytesMax) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_client", 0);
  }
  const Found found = Locate(command.job);
  uint64_t batch = BatchOfRef(command.job);
  if (found.error != nullptr) {
    return Refuse(request, found.code, found.error, batch);
  }
  if (found.finished) {
    return Refuse(request, StatusCode::kFailedPrecondition, "finished", batch);
  }
  ModelJob& job = jobs_.at(found.id);
  if (job.state == JobState::kLeased) {
    return Refuse(request, StatusCode::kFailedPrecondition, "leased", batch);
  }
  if (job.state == JobState::kDead) {
    SetDue(&job, DueAfter{});
    job.place = std::max(job.due, mark);
    job.batch = open_batch;
    batch = open_batch;
  }
  const Millis late = Lateness(job, now_);
  engine::Leased leased;
  leased.jobs.push_back(Grant(&job, command.lease, command.client, std::max(late, Millis(0))));
  Answer(request, std::move(leased), batch);
}

void Model::Do(RequestId request, const engine::GiveBack& command) {
  ModelJob* job = Holding(command.token);
  if (job == nullptr) {
    return Refuse(request, StatusCode::kFailedPrecondition, "lease_lost", 0);
  }
  ++job->returns;
  job->batch = open_batch;
  RoomMade(*job);
  if (job->spec->expires_after && DueWithin(*job, Millis(0))) {
    SetDue(job, DueAfter{});
    job->place = std::max(job->due, mark);
  }
  Place(job);
  Answer(request, ViewOf(*job, job->state), open_batch);
}

void Model::KickJob(ModelJob* job) {
  if (job->state == JobState::kDead) {
    job->attempts = 0;
  }
  SetDue(job, DueAfter{});
  ++job->kicks;
  AddEvent(job, JobEvent::Kind::kKicked, {}, {});
  job->place = std::max(job->due, mark);
  job->batch = open_batch;
  Place(job);
  ++counters_.kicked;
}

void Model::Do(RequestId request, const engine::Kick& command) {
  const Found found = Locate(command.job);
  const uint64_t batch = BatchOfRef(command.job);
  if (found.error != nullptr) {
    return Refuse(request, found.code, found.error, batch);
  }
  if (found.finished) {
    return Refuse(request, StatusCode::kFailedPrecondition, "finished", batch);
  }
  ModelJob& job = jobs_.at(found.id);
  if (job.state != JobState::kDead && job.state != JobState::kScheduled) {
    return Refuse(request, StatusCode::kFailedPrecondition, JobStateName(job.state), batch);
  }
  KickJob(&job);
  Answer(request, ViewOf(job, job.state), open_batch);
}

void Model::Do(RequestId request, const engine::KickQueue& command) {
  const auto queue = queues_.find(command.queue);
  if (queue == queues_.end() || !queue->second.stored) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  std::vector<ModelJob*> jobs = InState(command.queue, JobState::kDead);
  if (jobs.empty()) {
    jobs = InState(command.queue, JobState::kScheduled);
  }
  jobs.resize(std::min<size_t>({jobs.size(), command.count, limits::kKickCountMax}));
  for (ModelJob* job : jobs) {
    KickJob(job);
  }
  Answer(request, engine::Kicked{jobs.size()}, jobs.empty() ? 0 : open_batch);
}

void Model::Do(RequestId request, const engine::Peek& command) {
  using Which = engine::Peek::Which;
  if (Follows() && command.which == Which::kReady) {
    return OpenPeek(request, command.queue);
  }
  const auto queue = queues_.find(command.queue);
  const ModelJob* first = nullptr;
  if (queue != queues_.end() && queue->second.stored) {
    if (command.which == Which::kReady) {
      for (const ModelJob* job : InState(command.queue, JobState::kReady)) {
        first = first == nullptr || job->priority < first->priority ? job : first;
      }
    } else if (const auto jobs = InState(
                   command.queue,
                   command.which == Which::kBuried ? JobState::kDead : JobState::kScheduled);
               !jobs.empty()) {
      first = jobs.front();
    }
  }
  if (first == nullptr) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  JobView view = ViewOf(*first, first->state);
  view.payload = first->spec->payload;
  view.history = first->events;
  Answer(request, std::move(view), first->batch);
}

}  // namespace delayd::simulation

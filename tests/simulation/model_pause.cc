// Queues that hand nothing out for a while.
#include <algorithm>

#include "base/limits.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

const engine::QueueSettings& Model::SettingsFor(const std::string& queue) const {
  const auto named = options_.queues.find(queue);
  return named != options_.queues.end() ? named->second : options_.defaults;
}

ModelQueue& Model::QueueOf(const std::string& name) {
  const auto [queue, is_new] = queues_.try_emplace(name);
  if (is_new) {
    queue->second.bucket.SetCap(SettingsFor(name).rate, now_.boot);
  }
  return queue->second;
}

bool Model::MayHandOut(const std::string& name) {
  const ModelQueue& queue = QueueOf(name);
  const uint32_t cap = SettingsFor(name).concurrency;
  const auto leased = std::ranges::count_if(jobs_, [&](const auto& job) {
    return job.second.spec->queue == name && job.second.state == JobState::kLeased;
  });
  return !queue.pause && (cap == 0 || static_cast<uint64_t>(leased) < cap) &&
         queue.bucket.MayTake(now_.boot);
}

void Model::RoomMade(const ModelJob& job) {
  if (job.state == JobState::kLeased && SettingsFor(job.spec->queue).concurrency != 0) {
    ServeSoon(job.spec->queue);
  }
}

void Model::WatchRate(const std::string& name) {
  ModelQueue& queue = QueueOf(name);
  const bool any_ready = std::ranges::any_of(jobs_, [&](const auto& job) {
    return job.second.spec->queue == name && job.second.state == JobState::kReady;
  });
  if (!queue.rate_timer && any_ready && !queue.waiters.empty() &&
      !queue.bucket.MayTake(now_.boot)) {
    queue.rate_timer = queue.bucket.NextTake(now_.boot);
    queue.rate_rank = next_rank_++;
  }
}

void Model::Do(RequestId request, const engine::Configure& command) {
  options_.defaults = command.defaults;
  options_.queues = command.queues;
  for (auto& [name, queue] : queues_) {
    if (!queue.stored && queue.waiters.empty()) {
      queue.bucket = {};  // the engine has forgotten it, and begins with a full one
    }
    queue.bucket.SetCap(SettingsFor(name).rate, now_.boot);
    queue.rate_timer.reset();
    ServeSoon(name);
  }
  Answer(request, Body(), 0);
}

void Model::ServeSoon(const std::string& queue) {
  if (!QueueOf(queue).waiters.empty() && std::ranges::find(to_serve_, queue) == to_serve_.end()) {
    to_serve_.push_back(queue);
  }
}

void Model::Do(RequestId request, const engine::Pause& command) {
  if (command.duration &&
      (command.duration->count() < 1 || command.duration->count() > limits::kDelayMsMax)) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_duration", 0);
  }
  const auto found = queues_.find(command.queue);
  if (!command.create && (found == queues_.end() || !found->second.stored)) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  ModelQueue& queue = QueueOf(command.queue);
  queue.stored = true;
  ModelPause& pause = queue.pause.emplace();
  pause.since = now_.wall;
  if (command.duration) {
    pause.length = command.duration;
    pause.boot_id = BootId();
    pause.end = now_.boot + *command.duration;
    pause.timer_rank = next_rank_++;
  }
  ++queue.pauses;
  Answer(request, engine::QueueList{{ViewOfQueue(command.queue)}}, open_batch);
}

void Model::Do(RequestId request, const engine::Resume& command) {
  const auto found = queues_.find(command.queue);
  if (found == queues_.end() || !found->second.stored) {
    return command.is_known ? Answer(request, Body(), 0)
                            : Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  uint64_t batch = 0;
  if (found->second.pause) {
    batch = open_batch;
    found->second.pause.reset();
    ServeSoon(command.queue);
  }
  Answer(request, engine::QueueList{{ViewOfQueue(command.queue)}}, batch);
}

void Model::RestorePauses() {
  // In the order of the queues' names, as they are stored.
  for (auto& [name, queue] : queues_) {
    if (!queue.pause || !queue.pause->length) {
      continue;
    }
    if (queue.pause->boot_id != BootId()) {
      const Millis passed = now_.wall - queue.pause->since;
      queue.pause->end =
          now_.boot + std::clamp(*queue.pause->length - passed, Millis(0), *queue.pause->length);
    }
    queue.pause->timer_rank = next_rank_++;
  }
}

}  // namespace delayd::simulation

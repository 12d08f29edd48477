// Queues that hand nothing out for a while.
#include <algorithm>

#include "base/limits.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::RequestId;

bool Model::MayHandOut(const std::string& queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() || !found->second.pause;
}

void Model::ServeSoon(const std::string& queue) {
  if (!queues_[queue].waiters.empty() && std::ranges::find(to_serve_, queue) == to_serve_.end()) {
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
  ModelQueue& queue = queues_[command.queue];
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
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
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

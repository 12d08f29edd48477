// Queues that hand nothing out for a while.
#include <algorithm>
#include <utility>

#include "base/duration_text.h"
#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/timer_id.h"

namespace delayd::engine {

using storage::QueueRecord;
using storage::Table;

void EngineCore::PutQueueRow(const Queue& queue) {
  QueueRecord record{.id = queue.id};
  if (queue.pause) {
    record.pause = queue.pause->durable;
  }
  pending_.Put(Table::kQueues, queue.name, storage::EncodeQueueRecord(queue.name, record));
}

void EngineCore::ServeSoon(Queue& queue) {
  if (!queue.to_serve && !queue.waiters.empty()) {
    queue.to_serve = true;
    to_serve_.push_back(queue.id);
  }
}

StatusOr<Body> EngineCore::Do(const Pause& command) {
  DELAYD_RETURN_IF_ERROR(ValidateQueueName(command.queue));
  if (command.duration &&
      (command.duration->count() < 1 || command.duration->count() > limits::kDelayMsMax)) {
    return OutOfRange(
        "pause", *command.duration, Millis(1), Millis(limits::kDelayMsMax), "invalid_duration");
  }
  if (!command.create) {
    DELAYD_RETURN_IF_ERROR(FindStoredQueue(command.queue).status());
  }
  Queue& queue = QueueForNewJob(command.queue);
  EndPause(queue);
  QueuePause& pause = queue.pause.emplace();
  pause.durable.since = now_.wall;
  if (command.duration) {
    pause.end = now_.boot + *command.duration;
    pause.durable.timed =
        QueueRecord::Timed{.length = *command.duration, .boot_id = boot_id_, .boot_end = pause.end};
    StartPauseTimer(queue);
  }
  PutQueueRow(queue);
  ++queue.pauses;
  return Body(QueueList{{ViewOfQueue(queue)}});
}

StatusOr<Body> EngineCore::Do(const Resume& command) {
  const Status found = FindStoredQueue(command.queue).status();
  if (found.code() == StatusCode::kNotFound && command.is_known) {
    return Body();
  }
  DELAYD_RETURN_IF_ERROR(found);
  Queue& queue = *queues_.Find(command.queue);
  pending_.TouchAll();
  if (queue.pause) {
    Unpause(queue);
  }
  return Body(QueueList{{ViewOfQueue(queue)}});
}

void EngineCore::StartPauseTimer(Queue& queue) {
  queue.pause->timer = boot_wheel_.Add(BootTick(queue.pause->end), TimerIdOfPause(queue.id));
}

void EngineCore::EndPause(Queue& queue) {
  if (queue.pause && queue.pause->durable.timed) {
    boot_wheel_.Cancel(queue.pause->timer);
  }
  queue.pause.reset();
}

void EngineCore::Unpause(Queue& queue) {
  EndPause(queue);
  PutQueueRow(queue);
  ServeSoon(queue);
}

// After a start: the pause goes on by the boot clock on which it began or, after a reboot, by the
// wall time that has passed since.
void EngineCore::RestorePause(Queue& queue, const QueueRecord::Pause& pause) {
  queue.pause.emplace().durable = pause;
  if (!pause.timed) {
    return;
  }
  const Millis passed = now_.wall - pause.since;
  const Millis left = std::clamp(pause.timed->length - passed, Millis(0), pause.timed->length);
  queue.pause->end = pause.timed->boot_id == boot_id_ ? pause.timed->boot_end : now_.boot + left;
  StartPauseTimer(queue);
}

}  // namespace delayd::engine

// Settings of queues: applied to all of them at once, and their caps.
#include <algorithm>
#include <utility>

#include "daemon/engine/engine_core.h"
#include "daemon/engine/timer_id.h"

namespace delayd::engine {

const QueueSettings& EngineCore::SettingsFor(const std::string& queue) const {
  const auto named = options_.queues.find(queue);
  return named != options_.queues.end() ? named->second : options_.defaults;
}

void EngineCore::ApplySettings(Queue& queue) {
  queue.settings = SettingsFor(queue.name);
  queue.bucket.SetCap(queue.settings.rate, now_.boot);
  if (queue.rate_timer) {
    // The timer goes by the old cap; requests that wait are looked at anew.
    boot_wheel_.Cancel(*std::exchange(queue.rate_timer, std::nullopt));
  }
}

Queue& EngineCore::FindOrCreateQueue(const std::string& name) {
  if (Queue* queue = queues_.Find(name)) {
    return *queue;
  }
  Queue& queue = queues_.Create(name);
  ApplySettings(queue);
  return queue;
}

StatusOr<Body> EngineCore::Do(Configure& command) {
  options_.defaults = command.defaults;
  options_.queues = std::move(command.queues);
  NoteRetentions();
  queues_.ForEach([this](Queue& queue) {
    ApplySettings(queue);
    ServeSoon(queue);  // a cap may be wider than before
  });
  finished_rows_.LookAgain(now_);
  return Body();
}

bool EngineCore::MayHandOut(const Queue& queue) const {
  const uint32_t cap = queue.settings.concurrency;
  return !queue.pause.has_value() && (cap == 0 || queue.leased < cap) &&
         queue.bucket.MayTake(now_.boot);
}

// Requests that wait for a queue held back only by its rate cap are looked at when the cap lets go.
void EngineCore::WatchRate(Queue& queue) {
  if (queue.rate_timer || queue.ready.empty() || queue.waiters.empty() ||
      queue.bucket.MayTake(now_.boot)) {
    return;
  }
  const BootTime at = queue.bucket.NextTake(now_.boot);
  queue.rate_timer = boot_wheel_.Add(BootTick(at), TimerIdOfRate(queue.id));
}

// Rows of finished jobs stay for the longest retention of any queue, and each is forgotten by its
// own time. The longest is found here once: every commit asks for it, and a file may name tens of
// thousands of queues.
void EngineCore::NoteRetentions() {
  const auto of = [](const QueueSettings& settings) {
    return std::max(settings.key_retention, settings.history_retention);
  };
  Millis longest = of(options_.defaults);
  for (const auto& [name, settings] : options_.queues) {
    longest = std::max(longest, of(settings));
  }
  finished_rows_.SetRetention(longest);
}

}  // namespace delayd::engine

// What a job's record remembers of its life.
#include "base/limits.h"
#include "base/utf8.h"
#include "daemon/engine/engine_core.h"

namespace delayd::engine {

using storage::JobEvent;

void EngineCore::AddEvent(storage::JobRecord* record,
                          JobEvent::Kind kind,
                          std::string_view who,
                          std::string_view what) const {
  auto& events = record->events;
  if (events.size() >= limits::kJobEventsMax) {
    events.erase(events.begin());
  }
  events.push_back({.kind = kind,
                    .at = now_.wall,
                    .who = std::string(who),
                    .what = std::string(Utf8Front(what, limits::kEventErrorBytesMax))});
}

// Adds the event with which a job finishes, if its queue keeps a history.
void EngineCore::AddLastEvent(storage::JobRecord* record,
                              JobEvent::Kind kind,
                              std::string_view who) const {
  if (queues_[record->queue].settings.history_retention.count() > 0) {
    AddEvent(record, kind, who, {});
  }
}

}  // namespace delayd::engine

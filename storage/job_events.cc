#include "storage/job_events.h"

#include "base/limits.h"

namespace delayd::storage {

void AppendEvents(std::string* out, WallTime created, const std::vector<JobEvent>& events) {
  AppendVarint(out, events.size());
  for (const JobEvent& event : events) {
    AppendU8(out, static_cast<uint8_t>(event.kind));
    AppendSigned(out, Distance(ToMillis(created), ToMillis(event.at)));
    AppendBytes(out, event.who);
    AppendBytes(out, event.what);
  }
}

std::vector<JobEvent> ReadEvents(SealReader* in, WallTime created) {
  const uint64_t count = in->Varint();
  if (count == 0 || count > limits::kJobEventsMax) {
    in->Reject();
    return {};
  }
  std::vector<JobEvent> events(count);
  for (JobEvent& event : events) {
    const uint8_t kind = in->U8();
    if (kind < static_cast<uint8_t>(JobEvent::Kind::kNacked) ||
        kind > static_cast<uint8_t>(JobEvent::Kind::kReplaced)) {
      in->Reject();
    }
    event.kind = static_cast<JobEvent::Kind>(kind);
    const auto distance = static_cast<uint64_t>(in->Signed());
    event.at =
        WallFromMillis(static_cast<int64_t>(static_cast<uint64_t>(ToMillis(created)) + distance));
    event.who = in->Bytes();
    event.what = in->Bytes();
  }
  return events;
}

}  // namespace delayd::storage

#include "tests/storm/client.h"

#include <algorithm>
#include <variant>

#include "base/clock.h"
#include "protocol/json_writer.h"

namespace delayd::storm {

Client::Client(ClientOptions options, std::function<bool()> stopping)
    : options_(std::move(options)),
      stopping_(std::move(stopping)),
      random_(options_.seed * 1000 + options_.proc),
      history_(options_.history, options_.proc) {}

void Client::Run() {
  Connect();
  while (!stopping_()) {
    Step();
  }
}

void Client::Step() {
  if (draining_) {
    return held_.empty() ? Lease() : EndOne();
  }
  if (!unanswered_.empty() && Chance(80)) {
    const std::vector<JobSpec> again = std::move(unanswered_.back());
    unanswered_.pop_back();
    return Enqueue(again);
  }
  if (!held_.empty() && Chance(50)) {
    return EndOne();
  }
  DoSomething();
}

void Client::EnqueueAgain() {
  const std::optional<Mine> mine = PickMine();
  if (!mine || mine->spec.key.empty()) {
    return;
  }
  JobSpec spec = mine->spec;
  if (Chance(30)) {
    spec.payload = NewSpec(false).payload;
    // From here on the key may name another job than the one remembered.
    std::erase_if(mine_, [&spec](const Mine& one) { return one.spec.key == spec.key; });
    // A try of the old content that came later would give it to yet another job.
    std::erase_if(unanswered_, [&spec](const std::vector<JobSpec>& specs) {
      return std::ranges::any_of(specs,
                                 [&spec](const JobSpec& one) { return one.key == spec.key; });
    });
  }
  Enqueue({spec});
}

std::optional<Client::Mine> Client::PickMine() {
  if (mine_.empty()) {
    return std::nullopt;
  }
  return mine_[Below(mine_.size())];
}

JobSpec Client::NewSpec(bool keyed) {
  const std::string label = NewLabel();
  JobSpec spec{.queue = Chance(70) ? "a" : "b", .payload = MakePayload(label)};
  if (keyed) {
    spec.key = "k" + label;
  }
  DrawTimes(&spec);
  return spec;
}

std::vector<JobSpec> Client::NewSpecs() {
  const bool keyed = Chance(50);
  std::vector<JobSpec> specs;
  for (uint64_t n = Chance(60) ? 1 : 2 + Below(8); n > 0; --n) {
    specs.push_back(NewSpec(keyed));
  }
  return specs;
}

std::string Client::NewLabel() {
  const uint64_t dice = Below(100);
  const uint64_t size = Below(dice < 85 ? 200 : dice < 95 ? 8000 : dice < 99 ? 30'000 : 200'000);
  return "c" + std::to_string(options_.proc) + "-" + std::to_string(next_label_++) + "-" +
         std::to_string(size);
}

void Client::DropHeld(JobId id) {
  std::erase_if(held_, [id](const Held& held) { return held.id == id; });
}

std::string Client::IdEntry(JobId id) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  return entry.Take();
}

std::string Client::KickEntry(JobId id) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.Number("delay", 0);
  return entry.Take();
}

std::string Client::SpecEntry(const JobSpec& spec) {
  protocol::JsonObjectWriter entry;
  entry.String("queue", spec.queue);
  entry.String("payload", LabelOf(spec.payload));
  if (!spec.key.empty()) {
    entry.String("key", spec.key);
  }
  if (const auto* after = std::get_if<DueAfter>(&spec.due)) {
    entry.Number("delay", static_cast<uint64_t>(after->delay.count()));
  } else {
    entry.Number("due", static_cast<uint64_t>(ToMillis(std::get<DueAt>(spec.due).at)));
  }
  entry.Number("max_attempts", *spec.max_attempts);
  return entry.Take();
}

std::string Client::EnqueuedEntry(JobId id, bool existed) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.Bool("existed", existed);
  return entry.Take();
}

}  // namespace delayd::storm

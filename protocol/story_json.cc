#include "protocol/story_json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/time.h"
#include "protocol/json_members.h"
#include "protocol/nearest.h"

namespace delayd::protocol {
namespace {

struct Figure {
  std::string_view name;
  uint32_t JobStory::*figure;
};

constexpr std::array<Figure, 4> kFigures = {{{"timeouts", &JobStory::timeouts},
                                             {"releases", &JobStory::releases},
                                             {"buries", &JobStory::buries},
                                             {"kicks", &JobStory::kicks}}};
constexpr std::string_view kHistory = "history";

const Figure* FindFigure(std::string_view name) {
  const auto* const found = std::ranges::find(kFigures, name, &Figure::name);
  return found == kFigures.end() ? nullptr : found;
}

Status SetEventKind(std::string_view name, const JsonValue& value, JobEvent::Kind* kind) {
  std::string text;
  DELAYD_RETURN_IF_ERROR(SetString(name, value, &text));
  const std::optional<JobEvent::Kind> known = ParseJobEvent(text);
  if (!known.has_value()) {
    return InMember(
        name,
        InvalidArgument("is " + Quoted(text) + ", which is no event of a job", "invalid_member"));
  }
  *kind = *known;
  return OkStatus();
}

Status SetEvent(const JsonValue& value, JobEvent* event) {
  if (value.kind != JsonKind::kObject) {  // a string's text may look like an object
    return InvalidArgument("holds " + std::string(JsonKindName(value.kind)) +
                               "; write objects such as {\"event\": \"nacked\", \"at\": "
                               "\"2027-01-01T09:00:00Z\"}",
                           "invalid_member");
  }
  bool has_kind = false;
  std::optional<WallTime> at;
  const auto set = [&](std::string_view name, const JsonValue& member) -> Status {
    if (name == "event") {
      has_kind = true;
      return SetEventKind(name, member, &event->kind);
    }
    if (name == "at") {
      return SetTime(name, member, &at);
    }
    if (name == "client") {
      return SetString(name, member, &event->who);
    }
    return name == "error" ? SetString(name, member, &event->what) : OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(ReadJsonObject(value.text, set));
  if (!has_kind || !at.has_value()) {
    return InvalidArgument("an event lacks 'event' or 'at'; give both", "invalid_member");
  }
  event->at = *at;
  return OkStatus();
}

std::string EventToJson(const JobEvent& event) {
  JsonObjectWriter writer;
  writer.String("event", JobEventName(event.kind));
  writer.String("at", FormatUtc(event.at));
  if (!event.who.empty()) {
    writer.String("client", event.who);
  }
  if (!event.what.empty()) {
    writer.String("error", event.what);
  }
  return writer.Take();
}

}  // namespace

void WriteStory(const JobStory& story, JsonObjectWriter* writer) {
  for (const Figure& figure : kFigures) {
    if (story.*figure.figure != 0) {
      writer->Number(figure.name, story.*figure.figure);
    }
  }
  if (story.history.empty()) {
    return;
  }
  writer->Raw(kHistory, JsonArray(story.history, EventToJson));
}

bool IsStoryMember(std::string_view name) {
  return name == kHistory || FindFigure(name) != nullptr;
}

Status SetStoryMember(std::string_view name, const JsonValue& value, JobStory* story) {
  if (const Figure* figure = FindFigure(name)) {
    return SetUint32(name, value, &(story->*figure->figure));
  }
  return SetEach(name, value, [story](const JsonValue& element) {
    return SetEvent(element, &story->history.emplace_back());
  });
}

}  // namespace delayd::protocol

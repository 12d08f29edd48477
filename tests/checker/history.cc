#include "tests/checker/history.h"

#include <simdjson.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace delayd::checker {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::array<std::string_view, 15> kOps = {"",
                                                   "enqueue",
                                                   "lease",
                                                   "ack",
                                                   "nack",
                                                   "bury",
                                                   "extend",
                                                   "cancel",
                                                   "reschedule",
                                                   "show",
                                                   "kick",
                                                   "kill",
                                                   "final",
                                                   "config",
                                                   "disk"};
constexpr std::array<std::string_view, 4> kPhases = {"invoke", "ok", "fail", "unknown"};

template <typename Enum, size_t kCount>
bool ParseName(std::string_view name,
               const std::array<std::string_view, kCount>& names,
               Enum* out) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

template <typename Number>
bool ReadNumber(const element& value, Number* out) {
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS) {
    return false;
  }
  *out = static_cast<Number>(number);
  return true;
}

bool ReadText(const element& value, std::string* out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) {
    return false;
  }
  out->assign(text);
  return true;
}

bool ReadTexts(const element& value, std::vector<std::string>* texts) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    return false;
  }
  for (const element& one : list) {
    if (!ReadText(one, &texts->emplace_back())) {
      return false;
    }
  }
  return true;
}

bool ReadJobField(std::string_view name, const element& value, JobEntry* job) {
  if (name == "id") {
    return ReadNumber(value, &job->id);
  }
  if (name == "queue") {
    return ReadText(value, &job->queue);
  }
  if (name == "key") {
    return ReadText(value, &job->key);
  }
  if (name == "payload") {
    return ReadText(value, &job->payload);
  }
  if (name == "token") {
    return ReadText(value, &job->token);
  }
  if (name == "state") {
    return ReadText(value, &job->state);
  }
  if (name == "delay") {
    return ReadNumber(value, &job->delay);
  }
  if (name == "due") {
    return ReadNumber(value, &job->due);
  }
  if (name == "lease") {
    return ReadNumber(value, &job->lease);
  }
  if (name == "late") {
    return ReadNumber(value, &job->late);
  }
  if (name == "attempt") {
    return ReadNumber(value, &job->attempt);
  }
  if (name == "max_attempts") {
    return ReadNumber(value, &job->max_attempts);
  }
  if (name == "existed") {
    return value.get(job->existed) == simdjson::SUCCESS;
  }
  return false;
}

bool ReadJobs(const element& value, std::vector<JobEntry>* jobs) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    return false;
  }
  for (const element& one : list) {
    object fields;
    if (one.get(fields) != simdjson::SUCCESS) {
      return false;
    }
    JobEntry& job = jobs->emplace_back();
    for (const auto& field : fields) {
      if (!ReadJobField(field.key, field.value, &job)) {
        return false;
      }
    }
  }
  return true;
}

bool ReadEventField(std::string_view name, const element& value, Event* event) {
  if (name == "t") {
    return ReadNumber(value, &event->t);
  }
  if (name == "w") {
    return ReadNumber(value, &event->w);
  }
  if (name == "boot") {
    return ReadNumber(value, &event->boot);
  }
  if (name == "proc") {
    return ReadNumber(value, &event->proc);
  }
  if (name == "n") {
    return ReadNumber(value, &event->n);
  }
  if (name == "seq") {
    return ReadNumber(value, &event->seq);
  }
  if (name == "phase" || name == "op") {
    std::string_view text;
    return value.get(text) == simdjson::SUCCESS &&
           (name == "op" ? ParseName(text, kOps, &event->op)
                         : ParseName(text, kPhases, &event->phase));
  }
  if (name == "code") {
    return ReadText(value, &event->code);
  }
  if (name == "key_retention") {
    return ReadNumber(value, &event->key_retention);
  }
  if (name == "faults") {
    return ReadTexts(value, &event->faults);
  }
  if (name == "jobs") {
    return ReadJobs(value, &event->jobs);
  }
  return false;
}

Status AtLine(uint64_t line, const std::string& what) {
  return InvalidArgument("line " + std::to_string(line) + ": " + what, "invalid_history");
}

}  // namespace

Status ParseHistory(const std::string& text, History* history) {
  simdjson::dom::parser parser;
  simdjson::dom::document_stream lines;
  const simdjson::padded_string padded(text);
  if (parser.parse_many(padded, size_t{8} << 20).get(lines) != simdjson::SUCCESS) {
    return AtLine(1, "not JSON");
  }
  uint64_t line = 0;
  for (auto document : lines) {
    ++line;
    object fields;
    if (document.get(fields) != simdjson::SUCCESS) {
      return AtLine(line, "not a JSON object");
    }
    Event& event = history->emplace_back();
    event.line = line;
    for (const auto& field : fields) {
      if (!ReadEventField(field.key, field.value, &event)) {
        return AtLine(line, "unknown field or wrong type: " + std::string(field.key));
      }
    }
  }
  return OkStatus();
}

Status ReadHistory(const std::string& path, History* history) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(path + " cannot be read");
  }
  std::ostringstream text;
  text << file.rdbuf();
  const Status parsed = ParseHistory(text.str(), history);
  return parsed.ok() ? parsed : parsed.WithContext(path);
}

}  // namespace delayd::checker

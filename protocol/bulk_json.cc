#include "protocol/bulk_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "protocol/duration.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 5> kFilterMembers = {
    "queue", "state", "key_prefix", "due_before", "due_after"};

// Null would widen the filter: serializers write it for a time that could not be parsed.
Status SetText(std::string_view name, const JsonValue& value, std::optional<std::string>* out) {
  return value.kind == JsonKind::kNull ? NullRefused(name, "leave it out, which means any")
                                       : SetString(name, value, &out->emplace());
}

Status SetFilter(const JsonValue& value, JobFilterText* filter) {
  if (value.kind != JsonKind::kObject) {
    return InMember("filter",
                    InvalidArgument("is " + std::string(JsonKindName(value.kind)) +
                                        ", not an object such as {\"queue\": \"orders\"}",
                                    "invalid_member"));
  }
  return ReadJsonObject(value.text, [&](std::string_view name, const JsonValue& member) -> Status {
    if (name == "queue") {
      return SetText(name, member, &filter->queue);
    }
    if (name == "state") {
      return SetText(name, member, &filter->state);
    }
    if (name == "key_prefix") {
      return SetText(name, member, &filter->key_prefix);
    }
    if (name == "due_before") {
      return SetText(name, member, &filter->due_before);
    }
    if (name == "due_after") {
      return SetText(name, member, &filter->due_after);
    }
    return UnknownMember(name, kFilterMembers);
  });
}

Status UnknownRequestMember(std::string_view name, std::span<const std::string_view> takes) {
  if (std::ranges::find(kFilterMembers, name) != kFilterMembers.end()) {
    return InMember(name,
                    InvalidArgument("belongs into member 'filter', as in {\"filter\": {\"" +
                                        std::string(name) + "\": ...}}",
                                    "unknown_member"));
  }
  return UnknownMember(name, takes);
}

// A client that means "none" by 0 must not change a hundred jobs.
Status SetLimit(std::string_view name, const JsonValue& value, uint32_t* limit) {
  DELAYD_RETURN_IF_ERROR(SetUint32(name, value, limit));
  if (*limit == 0 && value.kind != JsonKind::kNull) {
    return InMember(
        name,
        InvalidArgument("is 0; use 1 to " + std::to_string(limits::kBulkJobsMax) +
                            ", or leave it out for " + std::to_string(limits::kBulkJobsDefault),
                        "invalid_limit"));
  }
  return OkStatus();
}

StatusOr<ForecastStep> ParseForecastStep(std::string_view json) {
  ForecastStep step;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "from") {
          return SetTime(name, value, &step.from);
        }
        if (name == "to") {
          return SetTime(name, value, &step.to);
        }
        if (name == "count") {
          return SetUint64(name, value, kCountMax, &step.count);
        }
        return name == "approximate" ? SetBool(name, value, &step.approximate) : OkStatus();
      }));
  return step;
}

std::string FilterToJson(const JobFilterText& filter) {
  JsonObjectWriter writer;
  for (const auto& [name, value] : {std::pair("queue", &filter.queue),
                                    std::pair("state", &filter.state),
                                    std::pair("key_prefix", &filter.key_prefix),
                                    std::pair("due_before", &filter.due_before),
                                    std::pair("due_after", &filter.due_after)}) {
    if (value->has_value()) {
      writer.String(name, **value);
    }
  }
  return writer.Take();
}

}  // namespace

StatusOr<ChangeManyRequest> ParseChangeManyRequest(std::string_view json,
                                                   std::span<const std::string_view> takes) {
  ChangeManyRequest request;
  DueMembers due;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (std::ranges::find(takes, name) == takes.end()) {
          return UnknownRequestMember(name, takes);
        }
        if (name == "filter") {
          return SetFilter(value, &request.filter);
        }
        if (DueMembers::Has(name)) {
          return due.Set(name, value);
        }
        if (name == "priority") {
          return SetUint32(name, value, &request.change.priority);
        }
        if (name == "dry_run") {
          return value.kind == JsonKind::kNull ? NullRefused(name, "write true or false")
                                               : SetBool(name, value, &request.dry_run);
        }
        if (name == "limit") {
          return SetLimit(name, value, &request.limit);
        }
        return SetString(name, value, &request.cursor);
      }));
  DELAYD_ASSIGN_OR_RETURN(request.change.due, due.Take());
  return request;
}

std::string ChangeManyRequestToJson(const ChangeManyRequest& request) {
  JsonObjectWriter writer;
  writer.Raw("filter", FilterToJson(request.filter));
  WriteReschedule(request.change, &writer);
  if (request.dry_run) {
    writer.Bool("dry_run", true);
  }
  if (request.limit != 0) {
    writer.Number("limit", request.limit);
  }
  if (!request.cursor.empty()) {
    writer.String("cursor", request.cursor);
  }
  return writer.Take();
}

std::string ChangedManyToJson(const ChangedMany& changed) {
  JsonObjectWriter writer;
  writer.Number("matched", changed.matched);
  writer.Number("changed", changed.changed);
  if (!changed.next_cursor.empty()) {
    writer.String("next_cursor", changed.next_cursor);
  }
  return writer.Take();
}

StatusOr<ChangedMany> ParseChangedMany(std::string_view json) {
  ChangedMany changed;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json, {"matched", "changed"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "matched") {
          return SetUint64(name, value, kCountMax, &changed.matched);
        }
        if (name == "changed") {
          return SetUint64(name, value, kCountMax, &changed.changed);
        }
        if (name == "next_cursor") {
          return SetString(name, value, &changed.next_cursor);
        }
        return OkStatus();
      }));
  return changed;
}

std::string ForecastStepToJson(const ForecastStep& step) {
  JsonObjectWriter writer;
  writer.String("from", FormatUtc(step.from));
  writer.String("to", FormatUtc(step.to));
  writer.Number("count", step.count);
  if (step.approximate) {
    writer.Bool("approximate", true);
  }
  return writer.Take();
}

std::string ForecastToJson(const std::vector<ForecastStep>& steps) {
  JsonObjectWriter writer;
  writer.Raw("steps", JsonArray(steps, ForecastStepToJson));
  return writer.Take();
}

StatusOr<std::vector<ForecastStep>> ParseForecast(std::string_view json) {
  std::vector<ForecastStep> steps;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"steps"}, [&](std::string_view name, const JsonValue& value) -> Status {
        return name == "steps" ? SetObjects(name, value, ParseForecastStep, &steps) : OkStatus();
      }));
  return steps;
}

}  // namespace delayd::protocol

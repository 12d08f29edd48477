#include <algorithm>
#include <array>

#include "base/time.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 4> kRescheduleMembers = {
    "delay", "due", "priority", "touch"};

}  // namespace

StatusOr<RescheduleRequest> ParseRescheduleRequest(std::string_view json) {
  RescheduleRequest request;
  DueMembers due;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (DueMembers::Has(name)) {
          return due.Set(name, value);
        }
        if (name == "priority") {
          return SetUint32(name, value, &request.priority);
        }
        if (name == "touch") {
          return SetBool(name, value, &request.touch);
        }
        return UnknownMember(name, kRescheduleMembers);
      }));
  DELAYD_ASSIGN_OR_RETURN(request.due, due.Take());
  if (request.touch) {
    if (request.due.has_value() || request.priority.has_value()) {
      return InvalidArgument(
          "member 'touch': repeats the job's own delay; leave delay, due and priority out",
          "invalid_member");
    }
    return request;
  }
  if (!request.due.has_value() && !request.priority.has_value()) {
    return InvalidArgument("nothing to change; give delay, due, priority or touch",
                           "invalid_member");
  }
  return request;
}

void WriteReschedule(const RescheduleRequest& request, JsonObjectWriter* writer) {
  if (request.due.has_value()) {
    if (const auto* at = std::get_if<DueAt>(&*request.due)) {
      writer->String("due", FormatUtc(at->at));
    } else {
      writer->String("delay", FormatDuration(std::get<DueAfter>(*request.due).delay));
    }
  }
  if (request.priority.has_value()) {
    writer->Number("priority", *request.priority);
  }
  if (request.touch) {
    writer->Bool("touch", true);
  }
}

std::string RescheduleRequestToJson(const RescheduleRequest& request) {
  JsonObjectWriter writer;
  WriteReschedule(request, &writer);
  return writer.Take();
}

StatusOr<LeaseRequest> ParseLeaseRequest(std::string_view json,
                                         std::span<const std::string_view> takes) {
  LeaseRequest request;
  if (IsBlank(json)) {
    return request;
  }
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (std::ranges::find(takes, name) == takes.end()) {
          return UnknownMember(name, takes);
        }
        if (name == "count") {
          return SetUint32(name, value, &request.count);
        }
        if (name == "wait") {
          return SetDuration(name, value, &request.wait);
        }
        return name == "lease" ? SetDuration(name, value, &request.lease)
                               : SetString(name, value, &request.client);
      }));
  return request;
}

std::string LeaseRequestToJson(const LeaseRequest& request) {
  JsonObjectWriter writer;
  writer.Number("count", request.count);
  writer.String("wait", FormatDuration(request.wait));
  if (request.lease.has_value()) {
    writer.String("lease", FormatDuration(*request.lease));
  }
  if (!request.client.empty()) {
    writer.String("client", request.client);
  }
  return writer.Take();
}

StatusOr<LeaseChange> ParseLeaseChange(std::string_view json,
                                       std::span<const std::string_view> takes) {
  LeaseChange change;
  if (IsBlank(json)) {
    return change;
  }
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (std::ranges::find(takes, name) == takes.end()) {
          return UnknownMember(name, takes);
        }
        if (name == "delay") {
          return SetDuration(name, value, &change.delay);
        }
        if (name == "lease") {
          return SetDuration(name, value, &change.lease);
        }
        if (name == "error") {
          return SetString(name, value, &change.error);
        }
        if (name == "priority") {
          return SetUint32(name, value, &change.priority);
        }
        return SetBool(name, value, &change.counts_as_attempt);
      }));
  return change;
}

std::string LeaseChangeToJson(const LeaseChange& change) {
  JsonObjectWriter writer;
  if (change.delay.has_value()) {
    writer.String("delay", FormatDuration(*change.delay));
  }
  if (change.lease.has_value()) {
    writer.String("lease", FormatDuration(*change.lease));
  }
  if (!change.error.empty()) {
    writer.String("error", change.error);
  }
  if (change.priority.has_value()) {
    writer.Number("priority", *change.priority);
  }
  if (!change.counts_as_attempt) {
    writer.Bool("counts_as_attempt", false);
  }
  return writer.Take();
}

}  // namespace delayd::protocol

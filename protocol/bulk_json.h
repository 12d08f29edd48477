// protocol/bulk_json.h — bulk changes and forecasts as JSON, in both directions.
//
// Errors:  kInvalidArgument naming the member. Unknown members are refused in requests and skipped
// in answers, so that a newer daemon can say more.
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "protocol/job_json.h"

namespace delayd::protocol {

// {"queue", "state", "key_prefix", "due_before", "due_after"}: a job must match every member that
// is set. Times are written as in a query: RFC 3339, or a duration from now.
struct JobFilterText {
  std::optional<std::string> queue;
  std::optional<std::string> state;
  std::optional<std::string> key_prefix;
  std::optional<std::string> due_before;
  std::optional<std::string> due_after;
};

// POST /v1/jobs:cancel and so on: {"filter": {...}, "dry_run", "limit", "cursor"}; :reschedule also
// takes "delay" or "due", and "priority".
struct ChangeManyRequest {
  JobFilterText filter;
  RescheduleRequest change;
  bool dry_run = false;
  uint32_t limit = 0;  // 0: the daemon's choice
  std::string cursor;
};

inline constexpr std::array<std::string_view, 7> kChangeManyMembers = {
    "filter", "dry_run", "limit", "cursor", "delay", "due", "priority"};
// For the changes that take no new due time or priority.
inline constexpr std::span kPlainChangeMembers = std::span(kChangeManyMembers).first<4>();

// `takes` is a subset of kChangeManyMembers; any other member is refused as unknown.
StatusOr<ChangeManyRequest> ParseChangeManyRequest(
    std::string_view json, std::span<const std::string_view> takes = kChangeManyMembers);
std::string ChangeManyRequestToJson(const ChangeManyRequest& request);

// {"matched": 250, "changed": 250, "next_cursor": "..."}: without a cursor the change is complete.
struct ChangedMany {
  uint64_t matched = 0;
  uint64_t changed = 0;
  std::string next_cursor;
};

std::string ChangedManyToJson(const ChangedMany& changed);
StatusOr<ChangedMany> ParseChangedMany(std::string_view json);

// {"steps": [{"from", "to", "count", "approximate"}]}; "approximate" is written only when true.
struct ForecastStep {
  WallTime from;
  WallTime to;
  uint64_t count = 0;
  bool approximate = false;
};

std::string ForecastToJson(const std::vector<ForecastStep>& steps);
std::string ForecastStepToJson(const ForecastStep& step);
StatusOr<std::vector<ForecastStep>> ParseForecast(std::string_view json);

}  // namespace delayd::protocol

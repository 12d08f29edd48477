// The routes that are about many jobs at once: changes by predicate, and the forecast.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/http/route_handlers.h"
#include "protocol/bulk_json.h"
#include "protocol/cancel_json.h"
#include "protocol/duration.h"

namespace delayd::http {

namespace {

constexpr Millis kForecastDefault = std::chrono::hours(1);
constexpr int64_t kForecastStepsDefault = 60;

Status SetMoment(const char* name,
                 const std::optional<std::string>& text,
                 const Now& now,
                 std::optional<WallTime>* out) {
  if (!text) {
    return OkStatus();
  }
  const StatusOr<WallTime> moment = ParseMoment(*text, now);
  if (!moment.ok()) {
    return moment.status().WithContext(std::string("member '") + name + "'");
  }
  *out = *moment;
  return OkStatus();
}

StatusOr<engine::JobFilter> ParseFilter(const protocol::JobFilterText& text, const Now& now) {
  engine::JobFilter filter{.queue = text.queue, .key_prefix = text.key_prefix.value_or("")};
  if (text.state) {
    const StatusOr<JobState> state = ParseStateName(*text.state);
    if (!state.ok()) {
      return state.status().WithContext("member 'state'");
    }
    filter.state = *state;
  }
  DELAYD_RETURN_IF_ERROR(SetMoment("due_before", text.due_before, now, &filter.due_before));
  DELAYD_RETURN_IF_ERROR(SetMoment("due_after", text.due_after, now, &filter.due_after));
  return filter;
}

Routed ChangeJobs(const RouteInput& input, engine::ChangeMany::Action action) {
  StatusOr<protocol::ChangeManyRequest> request =
      protocol::ParseChangeManyRequest(input.request.body);
  if (!request.ok()) {
    return ProblemResponse(request.status());
  }
  const bool has_change = request->change.due || request->change.priority;
  if (has_change && action != engine::ChangeMany::Action::kReschedule) {
    return ProblemResponse(InvalidArgument(
        "members 'delay', 'due' and 'priority' go with /v1/jobs:reschedule; leave them out",
        "unknown_member"));
  }
  StatusOr<engine::JobFilter> filter = ParseFilter(request->filter, input.now);
  if (!filter.ok()) {
    return ProblemResponse(filter.status());
  }
  if (action == engine::ChangeMany::Action::kKick && !filter->state) {
    filter->state = JobState::kDead;
  }
  return Order{engine::ChangeMany{.action = action,
                                  .filter = *std::move(filter),
                                  .due = request->change.due,
                                  .priority = request->change.priority,
                                  .dry_run = request->dry_run,
                                  .limit = request->limit,
                                  .cursor = std::move(request->cursor)},
               ReplyForm::kChangedMany};
}

}  // namespace

Routed CancelJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kCancel);
}

Routed CancelJobsById(const RouteInput& input) {
  StatusOr<std::vector<JobId>> ids = protocol::ParseCancelRequest(input.request.body);
  if (!ids.ok()) {
    return ProblemResponse(ids.status());
  }
  return Order{engine::CancelIds{*std::move(ids)}, ReplyForm::kCancelledIds};
}

Routed KickJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kKick);
}

Routed RescheduleJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kReschedule);
}

Routed ForecastJobs(const RouteInput& input) {
  engine::Forecast forecast{.from = input.now.wall};
  std::optional<WallTime> to;
  std::optional<Millis> step;
  for (const auto& [name, value] : input.query) {
    Status status;
    if (name == "queue") {
      forecast.queue = value;
      status = ValidateQueueName(value);
    } else if (name == "step") {
      const StatusOr<Millis> parsed = protocol::ParseDuration(value);
      status = parsed.status();
      step = parsed.ok() ? std::optional(*parsed) : std::nullopt;
    } else {
      const StatusOr<WallTime> parsed = ParseMoment(value, input.now);
      status = parsed.status();
      if (parsed.ok()) {
        (name == "from" ? forecast.from : to.emplace()) = *parsed;
      }
    }
    if (!status.ok()) {
      return ProblemResponse(status.WithContext("query parameter '" + name + "'"));
    }
  }
  forecast.to = to.value_or(forecast.from + kForecastDefault);
  const Millis length = forecast.to - forecast.from;
  forecast.step =
      step.value_or((length + Millis(kForecastStepsDefault - 1)) / kForecastStepsDefault);
  return Order{std::move(forecast), ReplyForm::kForecast};
}

}  // namespace delayd::http

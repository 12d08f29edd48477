// Routes for many jobs at once: changes by predicate or by id, and the forecast.
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  return text ? Take(ParseMoment(*text, now), out).WithContext(std::string("member '") + name + "'")
              : OkStatus();
}

StatusOr<engine::JobFilter> ParseFilter(const protocol::JobFilterText& text, const Now& now) {
  engine::JobFilter filter{.queue = text.queue, .key_prefix = text.key_prefix.value_or("")};
  if (text.state) {
    DELAYD_RETURN_IF_ERROR(
        Take(ParseStateName(*text.state), &filter.state).WithContext("member 'state'"));
  }
  DELAYD_RETURN_IF_ERROR(SetMoment("due_before", text.due_before, now, &filter.due_before));
  DELAYD_RETURN_IF_ERROR(SetMoment("due_after", text.due_after, now, &filter.due_after));
  return filter;
}

Handled ChangeJobs(const RouteInput& input, engine::ChangeMany::Action action) {
  const bool moves = action == engine::ChangeMany::Action::kReschedule;
  DELAYD_ASSIGN_OR_RETURN(
      protocol::ChangeManyRequest request,
      protocol::ParseChangeManyRequest(
          input.request.body,
          moves ? std::span<const std::string_view>(protocol::kChangeManyMembers)
                : protocol::kPlainChangeMembers));
  DELAYD_ASSIGN_OR_RETURN(engine::JobFilter filter, ParseFilter(request.filter, input.now));
  if (action == engine::ChangeMany::Action::kKick && !filter.state) {
    filter.state = JobState::kDead;
  }
  return Order{engine::ChangeMany{.action = action,
                                  .filter = std::move(filter),
                                  .due = request.change.due,
                                  .priority = request.change.priority,
                                  .dry_run = request.dry_run,
                                  .limit = request.limit,
                                  .cursor = std::move(request.cursor)},
               ReplyForm::kChangedMany};
}

}  // namespace

Handled CancelJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kCancel);
}

Handled CancelJobsById(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(std::vector<JobId> ids, protocol::ParseCancelRequest(input.request.body));
  return Order{engine::CancelIds{std::move(ids)}, ReplyForm::kCancelledIds};
}

Handled KickJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kKick);
}

Handled RescheduleJobs(const RouteInput& input) {
  return ChangeJobs(input, engine::ChangeMany::Action::kReschedule);
}

Handled ForecastJobs(const RouteInput& input) {
  engine::Forecast forecast{.from = input.now.wall};
  std::optional<WallTime> to;
  std::optional<Millis> step;
  for (const auto& [name, value] : input.query) {
    Status status;
    if (name == "queue") {
      forecast.queue = value;
      status = ValidateQueueName(value);
    } else if (name == "step") {
      status = Take(protocol::ParseDuration(value), &step);
    } else if (name == "from") {
      status = Take(ParseMoment(value, input.now), &forecast.from);
    } else {
      status = Take(ParseMoment(value, input.now), &to);
    }
    DELAYD_RETURN_IF_ERROR(status.WithContext("query parameter '" + name + "'"));
  }
  forecast.to = to.value_or(forecast.from + kForecastDefault);
  const Millis length = forecast.to - forecast.from;
  forecast.step =
      step.value_or((length + Millis(kForecastStepsDefault - 1)) / kForecastStepsDefault);
  return Order{std::move(forecast), ReplyForm::kForecast};
}

}  // namespace delayd::http

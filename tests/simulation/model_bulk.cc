// Changes of many jobs, and forecasts.
#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/limits.h"
#include "daemon/engine/list_page.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

using engine::ChangeMany;
using engine::RequestId;

namespace {

// "TIME-ID" of the row that was looked at last, then "@DUE" of a move or "~BEGAN" of a kick: all in
// hexadecimal.
struct Cursor {
  unsigned long long at = 0;
  unsigned long long id = 0;
  std::optional<WallTime> fixed;
};

Cursor ParseCursor(const std::string& text) {
  Cursor cursor;
  char mark = 0;
  unsigned long long fixed = 0;
  const int fields =
      std::sscanf(text.c_str(), "%llx-%llx%c%llx", &cursor.at, &cursor.id, &mark, &fixed);
  if (fields == 4) {
    cursor.fixed = WallFromMillis(static_cast<int64_t>(fixed));
  }
  return cursor;
}

std::string FormatCursor(const Model::Row& row, char mark, std::optional<WallTime> fixed) {
  char text[80];
  std::snprintf(text,
                sizeof text,
                "%llx-%llx",
                static_cast<unsigned long long>(ToMillis(row.place)),
                static_cast<unsigned long long>(ToInt(row.id)));
  std::string out = text;
  if (fixed) {
    const auto millis = static_cast<unsigned long long>(ToMillis(*fixed));
    std::snprintf(text, sizeof text, "%c%llx", mark, millis);
    out += text;
  }
  return out;
}

}  // namespace

// A delay that runs on the boot clock is over when it is over, whatever the wall clock is set to:
// its due time is told with the steps since it was promised, in whole seconds.
WallTime Model::DueByNow(const ModelJob& job) const {
  if (!job.on_boot_clock || job.state == JobState::kDead) {
    return job.due;
  }
  const Millis by_now = (now_.wall + (job.boot_due - now_.boot)) - job.due;
  return std::clamp(job.due + std::chrono::round<std::chrono::seconds>(by_now),
                    WallTime(),
                    WallFromMillis(limits::kWallMsMax));
}

bool Model::MatchesFilter(const ChangeMany& command,
                          std::optional<WallTime> fixed,
                          JobId id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    return false;
  }
  const ModelJob& job = found->second;
  const engine::JobFilter& filter = command.filter;
  const bool state_fits = filter.state ? job.state == *filter.state : job.state != JobState::kDead;
  if (!state_fits || !job.spec->key.starts_with(filter.key_prefix) ||
      (filter.due_after && DueByNow(job) < *filter.due_after) ||
      (filter.due_before && DueByNow(job) >= *filter.due_before)) {
    return false;
  }
  if (command.action == ChangeMany::Action::kCancel) {
    return true;
  }
  if (command.action == ChangeMany::Action::kKick) {
    // Not one that was kicked since the first step, nor one whose time has come and whose timer is
    // about to fire.
    const bool again = std::ranges::any_of(job.events, [&](const JobEvent& event) {
      return event.kind == JobEvent::Kind::kKicked && event.at >= *fixed && event.at <= now_.wall;
    });
    const Millis rounding(job.due_kind == DueKind::kRelative ? 1 : 0);
    return job.state == JobState::kDead ||
           (!again &&
            (job.on_boot_clock ? job.boot_due > now_.boot : job.due + rounding > now_.wall));
  }
  if (command.priority && job.priority != *command.priority) {
    return true;
  }
  if (!fixed) {
    return false;
  }
  // One that is due as asked already is left alone.
  const bool relative = std::holds_alternative<DueAfter>(*command.due);
  if (relative != (job.due_kind == DueKind::kRelative)) {
    return true;
  }
  return job.due != *fixed && !(relative && *fixed <= job.due && job.due <= now_.wall);
}

bool Model::ChangeOne(const ChangeMany& command, std::optional<WallTime> fixed, JobId id) {
  if (command.action == ChangeMany::Action::kCancel) {
    Do(RequestId{0}, engine::Cancel{id});
  } else if (command.action == ChangeMany::Action::kKick) {
    Do(RequestId{0}, engine::Kick{id});
  } else {
    engine::Reschedule one{.job = id, .due = command.due, .priority = command.priority};
    if (fixed && std::holds_alternative<DueAfter>(*command.due)) {
      one.due = DueAfter{std::max(*fixed - now_.wall, Millis(0))};
    }
    RescheduleOne(RequestId{0}, one);
  }
  const bool changed = answers_.back().reply.status.ok();
  answers_.pop_back();
  return changed;
}

const char* Model::Validate(const ChangeMany& command) const {
  const engine::JobFilter& filter = command.filter;
  const bool kick = command.action == ChangeMany::Action::kKick;
  const bool move = command.action == ChangeMany::Action::kReschedule;
  const bool dead = filter.state == JobState::kDead;
  if (!filter.queue && !filter.state && !filter.due_before && !filter.due_after &&
      filter.key_prefix.empty()) {
    return "empty_filter";
  }
  if (filter.state == JobState::kFinished) {
    return "invalid_state";
  }
  if (dead && !filter.queue) {
    return "queue_required";
  }
  if ((kick && !dead && filter.state != JobState::kScheduled) || (move && dead)) {
    return "invalid_state";
  }
  if (command.limit > limits::kBulkJobsMax) {
    return "invalid_limit";
  }
  if (move && !command.due && !command.priority) {
    return "invalid_reschedule";
  }
  return command.due ? ValidateDue(*command.due) : nullptr;
}

// Of a ready job, which has its row elsewhere once the commit under way is durable.
bool Model::IsLeft(const Row& row) const {
  const auto job = jobs_.find(row.id);
  return job != jobs_.end() && job->second.state == JobState::kReady &&
         job->second.place != row.place;
}

std::vector<Model::Row> Model::RowsToLookAt(const ChangeMany& command,
                                            std::optional<WallTime> fixed,
                                            std::pair<WallTime, JobId> after) const {
  const engine::JobFilter& filter = command.filter;
  const bool dead = filter.state == JobState::kDead;
  const bool ready = filter.state == JobState::kReady;
  const auto [back, forward] = wall_offsets_.Steps(now_);
  WallTime end = filter.due_before ? *filter.due_before + back : WallTime::max();
  if (ready) {  // no further than the last key that can be due
    const WallTime last = std::max({wall_offsets_.LatestKey(now_), mark, clock_note_.highest()});
    end = std::min(end, last + Millis(1));
  }
  end = std::max(end, mark + Millis(1));
  std::vector<Row> rows;
  for (const Row& row : durable_rows) {
    const bool in_range =
        dead ||
        ((!filter.due_after || row.place >= *filter.due_after - forward) && row.place < end) ||
        (ready && row.place >= end && IsLeft(row));
    // Those that have died since; later than now is before the clock was set back.
    const bool too_late = command.action == ChangeMany::Action::kKick && dead &&
                          row.place > *fixed && row.place <= now_.wall;
    if (row.dead == dead && in_range && !too_late && std::pair(row.place, row.id) > after &&
        (!filter.queue || row.queue == *filter.queue)) {
      rows.push_back(row);
    }
  }
  return rows;
}

void Model::Do(RequestId request, const ChangeMany& command) {
  const auto refuse = [&](const char* reason) {
    Refuse(request, StatusCode::kInvalidArgument, reason, 0);
  };
  if (const char* reason = Validate(command)) {
    return refuse(reason);
  }
  const std::optional<std::string>& name = command.filter.queue;
  const auto queue = name ? queues_.find(*name) : queues_.end();
  if (name && (queue == queues_.end() || !queue->second.stored)) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  const bool kick = command.action == ChangeMany::Action::kKick;
  const char mark_of_cursor = kick ? '~' : '@';
  if (!engine::ParseListCursor(command.cursor.substr(0, command.cursor.find(mark_of_cursor)))
           .ok()) {
    return refuse("invalid_cursor");
  }
  const Cursor cursor = ParseCursor(command.cursor);
  std::optional<WallTime> fixed = cursor.fixed;
  if (fixed && !command.due && !kick) {
    return refuse("invalid_cursor");
  }
  if (kick) {
    fixed = std::clamp(fixed.value_or(now_.wall), WallTime(), std::max(now_.wall, WallTime()));
  } else if (command.due && !fixed) {
    const auto* after = std::get_if<DueAfter>(&*command.due);
    fixed = after != nullptr ? now_.wall + after->delay : std::get<DueAt>(*command.due).at;
  }
  const std::vector<Row> rows = RowsToLookAt(
      command, fixed, {WallFromMillis(static_cast<int64_t>(cursor.at)), JobId{cursor.id}});
  const size_t limit = command.limit == 0 ? limits::kBulkJobsDefault : command.limit;
  engine::ChangedMany done;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == limits::kBulkRowsMax || done.matched == limit) {
      done.next_cursor = FormatCursor(rows[i - 1], mark_of_cursor, fixed);
      break;
    }
    if (MatchesFilter(command, fixed, rows[i].id)) {
      ++done.matched;
      done.changed += !command.dry_run && ChangeOne(command, fixed, rows[i].id) ? 1U : 0U;
    }
  }
  const uint64_t batch = done.changed > 0 ? open_batch : 0;
  Answer(request, std::move(done), batch);
}

void Model::Do(RequestId request, const engine::Forecast& command) {
  const auto queue = command.queue ? queues_.find(*command.queue) : queues_.end();
  if (command.queue && (queue == queues_.end() || !queue->second.stored)) {
    return Refuse(request, StatusCode::kNotFound, "not_found", 0);
  }
  if (command.from >= command.to || command.step <= Millis(0)) {
    return Refuse(request, StatusCode::kInvalidArgument, "invalid_range", 0);
  }
  if ((command.to - command.from - Millis(1)) / command.step >=
      static_cast<int64_t>(limits::kForecastStepsMax)) {
    return Refuse(request, StatusCode::kInvalidArgument, "too_many_steps", 0);
  }
  engine::ForecastView view;
  for (WallTime from = command.from; from < command.to; from += command.step) {
    engine::ForecastView::Step step{.from = from, .to = std::min(from + command.step, command.to)};
    step.count = static_cast<uint64_t>(std::ranges::count_if(jobs_, [&](const auto& entry) {
      const ModelJob& job = entry.second;
      return job.state == JobState::kScheduled && job.place >= step.from && job.place < step.to &&
             (!command.queue || job.spec->queue == *command.queue);
    }));
    view.steps.push_back(step);
  }
  // Any of them may have come or gone with a batch that is under way.
  uint64_t batch = 0;
  for (const auto& [id, job] : jobs_) {
    batch = std::max(batch, job.batch);
  }
  for (const auto& [id, gone] : gone_) {
    batch = std::max(batch, gone);
  }
  Answer(request, std::move(view), batch);
}

}  // namespace delayd::simulation

// How many jobs fall due, and when. Near jobs are counted in memory, the others by their keys on
// disk; both up to a bound, so that a forecast over millions does not keep other clients waiting.
// Beyond the bound it is an estimate and says so.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

ForecastView::Step* StepOf(ForecastView* view, Millis step, WallTime due) {
  const WallTime begin = view->steps.front().from;
  if (due < begin || due >= view->steps.back().to) {
    return nullptr;
  }
  return &view->steps[static_cast<size_t>((due - begin) / step)];
}

Millis StepLength(const ForecastView& view) {
  return view.steps.front().to - view.steps.front().from;
}

// The rows of a table, of one queue or of all, in their order.
class FarRows {
 public:
  FarRows(const storage::JobReader& store, std::optional<QueueId> queue)
      : store_(store), queue_(queue) {}

  using Visit = std::function<bool(const TimerPlace& place)>;
  using Counts = std::function<StatusOr<bool>(const TimerPlace& place)>;

  struct Counted {
    uint64_t seen = 0;
    uint64_t counted = 0;            // of these
    std::optional<TimerPlace> rest;  // where there are more
  };

  // Looks at `rows_max` rows at most.
  StatusOr<Counted> Count(const TimerPlace& from,
                          WallTime to,
                          uint64_t rows_max,
                          const Counts& counts) const {
    Counted count;
    Status failed;
    DELAYD_RETURN_IF_ERROR(Scan(from, to, [&](const TimerPlace& place) {
      if (count.seen == rows_max) {
        count.rest = place;
        return false;
      }
      ++count.seen;
      const StatusOr<bool> is_counted = counts(place);
      failed = is_counted.status();
      count.counted += is_counted.ok() && *is_counted ? 1U : 0U;
      return failed.ok();
    }));
    DELAYD_RETURN_IF_ERROR(failed);
    return count;
  }

  storage::KeyRange Range(const TimerPlace& from, WallTime to) const {
    return {Key(from), Key({to, JobId{}})};
  }

  StatusOr<std::vector<uint64_t>> Estimate(std::span<const storage::KeyRange> ranges) const {
    return store_.EstimateRows(table(), ranges);
  }

 private:
  // Calls `visit` for the rows from a place on; false ends the scan.
  Status Scan(const TimerPlace& from, WallTime to, const Visit& visit) const {
    const storage::KeyRange range = Range(from, to);
    Status failed;
    const auto see = [&](const auto& parts) {
      failed = parts.status();
      return failed.ok() && visit({parts->key_due, parts->id});
    };
    DELAYD_RETURN_IF_ERROR(
        store_.Scan(table(), range.from, range.to, [&](std::string_view key, std::string_view) {
          return queue_ ? see(storage::ParseByQueueKey(key)) : see(storage::ParseTimerKey(key));
        }));
    return failed;
  }

  Table table() const { return queue_ ? Table::kByQueue : Table::kTimers; }

  std::string Key(const TimerPlace& place) const {
    const auto [due, id] = place;
    return queue_ ? storage::ByQueueKey(*queue_, due, id) : storage::TimerKey(due, id);
  }

  const storage::JobReader& store_;
  const std::optional<QueueId> queue_;
};

// For the steps from `begin` on, which have more rows than may be counted. The store estimates how
// many each has; the steps with the fewest are counted after all, as far as the bound goes.
// `counted`: how many rows of each step belong to jobs in memory, which have been counted already.
Status EstimateSteps(const FarRows& rows,
                     const TimerPlace& begin,
                     const FarRows::Counts& counts,
                     const ForecastView& counted,
                     ForecastView* view) {
  struct Part {
    TimerPlace from;
    ForecastView::Step* step;
    uint64_t rows;
  };

  std::vector<Part> parts;
  std::vector<storage::KeyRange> ranges;
  for (ForecastView::Step& step : view->steps) {
    if (begin.first < step.to) {
      parts.push_back({std::max(begin, TimerPlace(step.from, JobId{})), &step, 0});
      ranges.push_back(rows.Range(parts.back().from, step.to));
    }
  }
  DELAYD_ASSIGN_OR_RETURN(const std::vector<uint64_t> estimates, rows.Estimate(ranges));
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].rows = estimates[i];
  }
  std::ranges::sort(parts, {}, &Part::rows);
  uint64_t rows_left = limits::kForecastRowsMax;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [from, step, estimate] = parts[i];
    const uint64_t rows_max = rows_left / (parts.size() - i);
    FarRows::Counted count{.rest = from};
    if (estimate <= 2 * rows_max) {  // else looking at them is in vain
      DELAYD_ASSIGN_OR_RETURN(count, rows.Count(from, step->to, rows_max, counts));
    }
    rows_left -= count.seen;
    step->count += count.counted;
    if (count.rest) {
      const uint64_t others = std::max(estimate, count.seen + 1) - count.seen;
      const uint64_t in_memory =
          counted.steps[static_cast<size_t>(step - view->steps.data())].count;
      // Rows of such jobs that were looked at are not among the others.
      const uint64_t unseen = in_memory - std::min(in_memory, count.seen - count.counted);
      step->count += others - std::min(others, unseen);
      step->approximate = true;
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Body> EngineCore::Do(const Forecast& command) {
  DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(command.queue));
  if (command.from >= command.to || command.step <= Millis(0)) {
    return InvalidArgument(
        "the forecast ends before it begins, or its step is nothing; give from < "
        "to and a step of at least 1ms",
        "invalid_range");
  }
  if ((command.to - command.from - Millis(1)) / command.step >=
      static_cast<int64_t>(limits::kForecastStepsMax)) {
    return InvalidArgument("the forecast has more than " +
                               std::to_string(limits::kForecastStepsMax) +
                               " steps; give a longer step or a shorter range",
                           "too_many_steps");
  }
  ForecastView view;
  for (WallTime from = command.from; from < command.to; from += command.step) {
    view.steps.push_back({.from = from, .to = std::min(from + command.step, command.to)});
  }
  ForecastNear(queue, TimerPlace(), &view);
  DELAYD_RETURN_IF_ERROR(ForecastFar(queue, &view));
  pending_.TouchAll();
  return Body(std::move(view));
}

// Counts every scheduled job in memory from a place to the frontier, or every n-th when there are
// very many: their slots in the table say nothing of their due times.
void EngineCore::ForecastNear(const Queue* queue, const Frontier& from, ForecastView* view) const {
  const Millis step_length = StepLength(*view);
  const size_t stride = 1 + jobs_.slot_count() / limits::kForecastSlotsMax;
  for (size_t slot = 0; slot < jobs_.slot_count(); slot += stride) {
    const JobEntry& entry = jobs_[static_cast<Slot>(slot)];
    const TimerPlace place(entry.key_due(), entry.id());
    if (entry.phase() != Phase::kScheduled || (queue != nullptr && entry.queue() != queue->id) ||
        place < from || place >= frontier_) {
      continue;
    }
    if (ForecastView::Step* step = StepOf(view, step_length, entry.key_due())) {
      step->count += stride;
    }
  }
  if (stride > 1) {
    // Also a step in which none was met: its jobs may be among those that were passed over.
    for (ForecastView::Step& step : view->steps) {
      step.approximate = TimerPlace(step.from, JobId{}) < frontier_;
    }
  }
}

// Counts the jobs behind the frontier, also those that are in memory still or again, and the jobs
// on disk before it: durable rows without a change under way, and the rows that those changes put.
Status EngineCore::ForecastFar(const Queue* queue, ForecastView* view) const {
  TimerPlace begin = frontier_;
  if (FirstOnDisk() <= begin.first) {
    // A queue lags behind, or jobs were left on disk.
    begin = {std::max(FirstOnDisk(), FirstKeyNotDue()), JobId{}};
  }
  begin = std::max(begin, TimerPlace(view->steps.front().from, JobId{}));
  if (begin.first >= view->steps.back().to) {
    return OkStatus();
  }
  const FarRows rows =
      queue == nullptr ? FarRows(store_, std::nullopt) : FarRows(store_, queue->id);
  const auto waits_there = [&](const TimerPlace& place) -> StatusOr<bool> {
    const auto [key_due, id] = place;
    if (pending_.IsChanging(Table::kIndex, storage::IndexKey(id))) {
      return false;
    }
    if (const std::optional<Slot> slot = jobs_.Find(id)) {
      return WaitsBehindFrontier(*slot, place);
    }
    DELAYD_ASSIGN_OR_RETURN(const JobState state, StateOnDisk(key_due, id));
    return state == JobState::kScheduled;
  };
  const auto count_in_step = [&](const TimerPlace& place) -> StatusOr<bool> {
    DELAYD_ASSIGN_OR_RETURN(const bool waits, waits_there(place));
    StepOf(view, StepLength(*view), place.first)->count += waits ? 1U : 0U;
    return waits;
  };
  // Row by row in their order, up to the bound.
  DELAYD_ASSIGN_OR_RETURN(
      const FarRows::Counted exact,
      rows.Count(begin, view->steps.back().to, limits::kForecastRowsMax, count_in_step));
  if (exact.rest) {
    ForecastView counted;
    for (const ForecastView::Step& step : view->steps) {
      counted.steps.push_back({.from = step.from, .to = step.to});
    }
    if (*exact.rest < frontier_) {
      ForecastNear(queue, *exact.rest, &counted);
    }
    DELAYD_RETURN_IF_ERROR(EstimateSteps(rows, *exact.rest, waits_there, counted, view));
  }
  ForecastUnderway(queue, view);
  return OkStatus();
}

bool EngineCore::WaitsBehindFrontier(Slot slot, const Frontier& place) const {
  return place >= frontier_ && jobs_[slot].phase() == Phase::kScheduled;
}

void EngineCore::ForecastUnderway(const Queue* queue, ForecastView* view) const {
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    DELAYD_CHECK(parts.ok() && head.ok());
    const std::optional<Slot> slot = jobs_.Find(parts->id);
    const bool waits = slot ? WaitsBehindFrontier(*slot, {parts->key_due, parts->id})
                            : !MomentOf(DueOf(*head)).IsOver(advanced_to_);
    if (!waits || (queue != nullptr && head->queue != queue->id)) {
      return;
    }
    if (ForecastView::Step* step = StepOf(view, StepLength(*view), parts->key_due)) {
      ++step->count;
    }
  });
}

}  // namespace delayd::engine

// How many jobs fall due, and when. Near jobs are counted in memory, the others by their keys on
// disk; both up to a bound, so that a forecast over millions does not keep other clients waiting.
// Beyond the bound it is an estimate and says so.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// A place in the store's order of timers.
using TimerPlace = std::pair<WallTime, JobId>;

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

// Counts rows between two places, or what they seem to be from looks at some of them.
class RowEstimate {
 public:
  // Calls `visit` for the rows from a place on; false ends the scan.
  using Visit = std::function<bool(const TimerPlace& place)>;
  using Scan = std::function<Status(const TimerPlace& from, WallTime to, const Visit& visit)>;

  // `counts`: whether a row is one of those to be counted.
  RowEstimate(Scan scan, std::function<bool(const TimerPlace&)> counts, JobId id_end)
      : scan_(std::move(scan)), counts_(std::move(counts)), id_end_(ToInt(id_end)) {}

  Status Count(TimerPlace from, WallTime to, size_t rows_max, ForecastView::Step* step) {
    DELAYD_ASSIGN_OR_RETURN(const Look whole, LookAt(from, to, rows_max / 2));
    if (whole.is_whole) {
      step->count += whole.counted;
      return OkStatus();
    }
    step->approximate = true;
    double total = 0;
    const Millis length = (to - from.first) / kParts;
    for (int part = 0; part < kParts; ++part) {
      const WallTime end = part + 1 == kParts ? to : from.first + length;
      DELAYD_ASSIGN_OR_RETURN(const double rows, Walk(from, end, rows_max / 2 / kParts / kLooks));
      total += rows;
      from = {end, JobId{}};
    }
    step->count += static_cast<uint64_t>(total + 0.5);
    return OkStatus();
  }

 private:
  static constexpr int kParts = 4;
  static constexpr int kLooks = 2;

  struct Look {
    uint64_t rows = 0;
    uint64_t counted = 0;
    TimerPlace first;
    TimerPlace last;
    bool is_whole = true;  // there were no more
  };

  StatusOr<Look> LookAt(const TimerPlace& from, WallTime to, size_t rows_max) const {
    Look look;
    DELAYD_RETURN_IF_ERROR(scan_(from, to, [&](const TimerPlace& place) {
      if (look.rows == std::max<size_t>(rows_max, 2)) {
        look.is_whole = false;
        return false;
      }
      if (look.rows == 0) {
        look.first = place;
      }
      look.last = place;
      ++look.rows;
      look.counted += counts_(place) ? 1U : 0U;
      return true;
    }));
    return look;
  }

  // A few looks on the way; what they found stands for the whole way.
  StatusOr<double> Walk(const TimerPlace& from, WallTime to, size_t rows_max) {
    double total = 0;
    TimerPlace at = from;
    for (int i = 0; i < kLooks; ++i) {
      DELAYD_ASSIGN_OR_RETURN(const Look look, LookAt(at, to, rows_max));
      total += static_cast<double>(look.counted);
      if (look.is_whole) {
        return total;
      }
      at = {look.last.first, JobId{ToInt(look.last.second) + 1}};
      if (look.first.first == look.last.first) {
        // All at one moment, as jobs of midnight are: that moment stands for itself only.
        DELAYD_ASSIGN_OR_RETURN(const double rest, RestOfMoment(look, to));
        total += rest;
        at = {look.last.first + Millis(1), JobId{}};
      }
    }
    const auto walked = static_cast<double>(std::max<int64_t>((at.first - from.first).count(), 1));
    return total * static_cast<double>((to - from.first).count()) / walked;
  }

  // How many more are due in the very millisecond of `look`: its ids go on up to the last one there
  // as densely as they were seen.
  StatusOr<double> RestOfMoment(const Look& look, WallTime to) {
    const WallTime at = look.last.first;
    uint64_t found = ToInt(look.last.second);
    uint64_t none_from = id_end_;
    while (none_from - std::min(found, none_from) > 1 && seeks_left_ > 0) {
      --seeks_left_;
      const uint64_t middle = found + (none_from - found) / 2;
      DELAYD_ASSIGN_OR_RETURN(const Look beyond,
                              LookAt({at, JobId{middle}}, std::min(to, at + Millis(1)), 1));
      if (beyond.rows == 0) {
        none_from = middle;
      } else {
        found = ToInt(beyond.last.second);
      }
    }
    const auto span = static_cast<double>(ToInt(look.last.second) - ToInt(look.first.second) + 1);
    return static_cast<double>(found - ToInt(look.last.second)) *
           static_cast<double>(look.counted) / span;
  }

  const Scan scan_;
  const std::function<bool(const TimerPlace&)> counts_;
  const uint64_t id_end_;
  size_t seeks_left_ = limits::kForecastSeeksMax;
};

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
  ForecastNear(queue, &view);
  DELAYD_RETURN_IF_ERROR(ForecastFar(queue, &view));
  pending_.TouchAll();
  return Body(std::move(view));
}

// Every scheduled job in memory, or every n-th when there are very many: their places in the table
// say nothing of their due times.
void EngineCore::ForecastNear(const Queue* queue, ForecastView* view) const {
  const Millis step_length = StepLength(*view);
  const size_t stride = 1 + jobs_.slot_count() / limits::kForecastSlotsMax;
  for (size_t slot = 0; slot < jobs_.slot_count(); slot += stride) {
    const JobEntry& entry = jobs_[static_cast<Slot>(slot)];
    if (entry.phase() != Phase::kScheduled || (queue != nullptr && entry.queue() != queue->id)) {
      continue;
    }
    if (ForecastView::Step* step = StepOf(view, step_length, entry.key_due())) {
      step->count += stride;
      step->approximate = stride > 1;
    }
  }
}

// What lies behind the frontier: durable rows, as far as no change of them is under way, and the
// rows that will be there for those changes.
Status EngineCore::ForecastFar(const Queue* queue, ForecastView* view) const {
  TimerPlace begin = std::max(frontier_, TimerPlace(far_begins_, JobId{}));
  if (FirstOnDisk() < begin.first) {
    begin = {std::max(FirstOnDisk(), FirstKeyNotDue()), JobId{}};  // a queue lags behind
  }
  begin = std::max(begin, TimerPlace(view->steps.front().from, JobId{}));
  const auto first = std::ranges::find_if(
      view->steps, [&](const ForecastView::Step& step) { return begin.first < step.to; });
  if (first == view->steps.end()) {
    return OkStatus();
  }
  const auto scan =
      [&](const TimerPlace& from, WallTime to, const RowEstimate::Visit& visit) -> Status {
    Status failed;
    const auto see = [&](const auto& parts) {
      failed = parts.status();
      return failed.ok() && visit({parts->key_due, parts->id});
    };
    if (queue != nullptr) {
      DELAYD_RETURN_IF_ERROR(store_.Scan(Table::kByQueue,
                                         storage::ByQueueKey(queue->id, from.first, from.second),
                                         storage::ByQueueKey(queue->id, to, JobId{}),
                                         [&](std::string_view key, std::string_view) {
                                           return see(storage::ParseByQueueKey(key));
                                         }));
    } else {
      DELAYD_RETURN_IF_ERROR(store_.Scan(Table::kTimers,
                                         storage::TimerKey(from.first, from.second),
                                         storage::TimerKey(to, JobId{}),
                                         [&](std::string_view key, std::string_view) {
                                           return see(storage::ParseTimerKey(key));
                                         }));
    }
    return failed;
  };
  const auto waits_on_disk = [this](const TimerPlace& place) {
    const auto [key_due, id] = place;
    return !jobs_.Find(id) && !pending_.IsChanging(Table::kIndex, storage::IndexKey(id)) &&
           StateOnDisk(key_due, id) == JobState::kScheduled;
  };
  RowEstimate estimate(scan, waits_on_disk, JobId{next_id_});
  const auto steps = static_cast<size_t>(view->steps.end() - first);
  for (auto step = first; step != view->steps.end(); ++step) {
    const TimerPlace from = std::max(begin, TimerPlace(step->from, JobId{}));
    DELAYD_RETURN_IF_ERROR(
        estimate.Count(from, step->to, limits::kForecastRowsMax / steps, &*step));
  }
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    DELAYD_CHECK(parts.ok() && head.ok());
    if (jobs_.Find(parts->id) || (queue != nullptr && head->queue != queue->id) ||
        MomentOf(DueOf(*head)).IsOver(advanced_to_)) {
      return;
    }
    if (ForecastView::Step* step = StepOf(view, StepLength(*view), parts->key_due)) {
      ++step->count;
    }
  });
  return OkStatus();
}

}  // namespace delayd::engine

// How many jobs fall due, and when. Near jobs are counted in memory, the others by their keys on
// disk; both up to a bound, so that a forecast over millions does not keep other clients waiting.
// Beyond the bound it is an estimate and says so.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
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

  // Counts up to `rows_max` rows; what is behind them is guessed to be as dense.
  Status Add(const TimerPlace& from, WallTime to, size_t rows_max, ForecastView::Step* step) {
    DELAYD_ASSIGN_OR_RETURN(const Look look, LookAt(from, to, rows_max));
    step->count += look.counted;
    if (look.is_whole) {
      return OkStatus();
    }
    TimerPlace next = {look.last.first, JobId{ToInt(look.last.second) + 1}};
    if (look.first.first == look.last.first) {
      // All at one moment, as jobs of midnight are: that moment stands for itself only.
      DELAYD_ASSIGN_OR_RETURN(const double rest, RestOfMoment(look, to));
      step->count += static_cast<uint64_t>(rest + 0.5);
      step->approximate = true;
      next = {look.last.first + Millis(1), JobId{}};
    }
    const auto walked =
        static_cast<double>(std::max<int64_t>((next.first - from.first).count(), 1));
    const auto left = static_cast<double>((to - next.first).count());
    guesses_.push({static_cast<double>(look.counted) * left / walked, next, to, step});
    return OkStatus();
  }

  // Looks into the middle of what is guessed to be most, again and again: a burst is then found to
  // be one, whatever length of time it was taken to stand for. Adds the guesses that remain.
  Status Finish() {
    for (size_t i = 0; i < kGuessesMax && !guesses_.empty(); ++i) {
      const Guess guess = guesses_.top();
      guesses_.pop();
      const WallTime middle = guess.from.first + (guess.to - guess.from.first) / 2;
      if (middle > guess.from.first) {
        DELAYD_RETURN_IF_ERROR(Add(guess.from, middle, kLookRows, guess.step));
        DELAYD_RETURN_IF_ERROR(Add({middle, JobId{}}, guess.to, kLookRows, guess.step));
      } else {
        DELAYD_RETURN_IF_ERROR(Add(guess.from, guess.to, kLookRows, guess.step));
      }
    }
    for (; !guesses_.empty(); guesses_.pop()) {
      guesses_.top().step->count += static_cast<uint64_t>(guesses_.top().rows + 0.5);
      guesses_.top().step->approximate = true;
    }
    return OkStatus();
  }

 private:
  static constexpr size_t kLookRows = 16;
  static constexpr size_t kGuessesMax = 256;
  static constexpr size_t kSearchSeeksMax = 53;  // each halves a range of ids
  static_assert(limits::kJobIdMax >> kSearchSeeksMax == 0);
  static_assert(kSearchSeeksMax <= limits::kForecastSeeksMax);

  struct Look {
    uint64_t rows = 0;
    uint64_t counted = 0;
    TimerPlace first;
    TimerPlace last;
    bool is_whole = true;  // there were no more
  };

  // How many rows there seem to be between two places.
  struct Guess {
    double rows;
    TimerPlace from;
    WallTime to;
    ForecastView::Step* step;

    bool operator<(const Guess& other) const { return rows < other.rows; }
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

  // How many more are due in the very millisecond of `look`: its ids go on up to the last one there
  // as densely as they were seen. After too many of such searches: as many as there were so far.
  StatusOr<double> RestOfMoment(const Look& look, WallTime to) {
    if (seeks_left_ < kSearchSeeksMax) {
      return moments_ == 0 ? 0 : rest_of_moments_ / static_cast<double>(moments_);
    }
    const WallTime at = look.last.first;
    uint64_t found = ToInt(look.last.second);
    uint64_t none_from = id_end_;
    while (none_from - std::min(found, none_from) > 1) {
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
    const double rest = static_cast<double>(found - ToInt(look.last.second)) *
                        static_cast<double>(look.counted) / span;
    rest_of_moments_ += rest;
    ++moments_;
    return rest;
  }

  const Scan scan_;
  const std::function<bool(const TimerPlace&)> counts_;
  const uint64_t id_end_;
  size_t seeks_left_ = limits::kForecastSeeksMax;
  double rest_of_moments_ = 0;
  size_t moments_ = 0;
  std::priority_queue<Guess> guesses_;
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
  if (begin.first >= view->steps.back().to) {
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
  // One by one in their order, as long as that may go on.
  TimerPlace counted_to = {view->steps.back().to, JobId{}};
  size_t rows = 0;
  DELAYD_RETURN_IF_ERROR(scan(begin, counted_to.first, [&](const TimerPlace& place) {
    if (rows == limits::kForecastRowsMax) {
      counted_to = place;
      return false;
    }
    ++rows;
    if (waits_on_disk(place)) {
      ++StepOf(view, StepLength(*view), place.first)->count;
    }
    return true;
  }));
  RowEstimate estimate(scan, waits_on_disk, JobId{next_id_});
  const auto beyond = std::ranges::find_if(
      view->steps, [&](const ForecastView::Step& step) { return counted_to.first < step.to; });
  const auto steps = static_cast<size_t>(view->steps.end() - beyond);
  for (auto step = beyond; step != view->steps.end(); ++step) {
    const TimerPlace from = std::max(counted_to, TimerPlace(step->from, JobId{}));
    DELAYD_RETURN_IF_ERROR(
        estimate.Add(from, step->to, limits::kForecastRowsMax / 2 / steps, &*step));
  }
  DELAYD_RETURN_IF_ERROR(estimate.Finish());
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

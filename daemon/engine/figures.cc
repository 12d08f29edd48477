// What the engine reports about its queues and all its jobs, and to an operator's monitoring.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/engine_figures.h"
#include "daemon/engine/list_page.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// A queue that bears the name of the sum is part of it: two series of one name would be an error.
constexpr std::string_view kOther = "other";

void TakeFrom(QueueView* sum, const QueueView& one) {
  sum->scheduled -= one.scheduled;
  sum->ready -= one.ready;
  sum->leased -= one.leased;
  sum->dead -= one.dead;
}

// Whether anybody would miss the queue's name.
bool HasWork(const Queue& queue) {
  return queue.counts.pending != 0 || queue.counts.dead != 0 || queue.pause;
}

}  // namespace

QueueView EngineCore::ViewOfQueue(const Queue& queue) const {
  QueueView view{.name = queue.name};
  view.scheduled = queue.scheduled_count();
  view.ready = queue.ready_count();
  view.leased = queue.leased;
  view.dead = queue.counts.dead;
  view.urgent = queue.urgent;
  view.damaged = queue.damaged;
  view.enqueued = queue.enqueued;
  view.handed_out = queue.handed_out;
  view.acked = queue.acked;
  view.cancelled = queue.cancelled;
  view.pauses = queue.pauses;
  view.concurrency = queue.settings.concurrency;
  view.max_jobs = queue.settings.max_jobs;
  view.rate = queue.settings.rate;
  view.paused = queue.pause.has_value();
  if (queue.pause && queue.pause->durable.timed) {
    view.pause_length = queue.pause->durable.timed->length;
    view.pause_left = std::max(queue.pause->end - now_.boot, Millis(0));
  }
  return view;
}

StatusOr<Body> EngineCore::Do(const ListQueues& command) {
  QueueList list;
  pending_.TouchAll();
  if (command.queue) {
    DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(*command.queue));
    list.queues.push_back(ViewOfQueue(*queue));
    return Body(std::move(list));
  }
  DELAYD_ASSIGN_OR_RETURN(const ListCursor from, ParseListCursor(command.cursor));
  // There may be 100,000 queues, and everybody waits.
  const size_t limit = command.limit != 0 ? command.limit : limits::kListLimitMax;
  list.queues.reserve(std::min(limit, queues_.size()));
  queues_.ForEachFrom(ToInt(from.id), [&](const Queue& queue) {
    if (queue.stored && list.queues.size() == limit) {
      list.next_cursor = FormatListCursor({.at = {}, .id = JobId{ToInt(queue.id)}});
      return false;
    }
    if (queue.stored) {
      list.queues.push_back(ViewOfQueue(queue));
    }
    return true;
  });
  return Body(std::move(list));
}

StatusOr<Body> EngineCore::Do(const GetStats&) {
  pending_.TouchAll();
  return Body(stats());
}

StatusOr<Body> EngineCore::Do(const Drain& command) {
  draining_ = command.on;
  pending_.TouchAll();
  return Body(stats());
}

StatusOr<Body> EngineCore::Do(const AcceptClock&) {
  clock_note_.Accept(now_);
  NoteClock();
  pending_.TouchAll();
  return Body(stats());
}

StatsView EngineCore::stats() const {
  // From sums: there may be 100,000 queues, and everybody waits.
  StatsView view = counters_;
  view.scheduled = queues_.sums().pending - fired_count_;
  view.ready = fired_count_ - leases_.size();
  view.leased = leases_.size();
  view.dead = queues_.sums().dead;
  view.urgent = queues_.sums().urgent;
  view.queues = queues_.sums().stored;
  view.waiting = waiters_.size();
  view.draining = draining_;
  view.epoch = epoch_;
  view.commit_sequence = pending_.committed();
  view.next_due = NextDue();
  view.now = now_.wall;
  return view;
}

// Found in the rows, as the wheels' timers are also ends of leases, waits and pauses. The scan
// begins where a job may still wait, which is before now if the wall clock was set forward. A job
// keyed at the low-water mark may be due before it, if the mark is of a clock that was ahead;
// behind the mark, keys are in the order of due times, except for steps of the clock. No more than
// kNextDueRowsMax rows are looked at, and then as many behind the ready ones.
std::optional<WallTime> EngineCore::NextDue() const {
  constexpr size_t kNextDueRowsMax = 1000;
  const Millis back = wall_offsets_.Steps(now_).first;
  std::optional<WallTime> next;
  const auto consider = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    if (!parts.ok() || !head.ok()) {
      return false;
    }
    const std::optional<Slot> slot = jobs_.Find(parts->id);
    const bool waits = slot ? jobs_[*slot].phase() == Phase::kScheduled
                            : !MomentOf(DueOf(*head)).IsOver(advanced_to_);
    const WallTime due = head->due + StepOfWall(DueOf(*head), boot_id_, now_);
    if (waits && due > now_.wall) {
      next = std::min(next.value_or(due), due);
    }
    return next && parts->key_due > std::max(low_water_mark_.decided(), *next + back);
  };
  pending_.ForEachPut(Table::kTimers, consider);
  // A failed read is ignored: it is noticed where the engine needs the store to go on.
  const auto look_from = [&](WallTime from) {
    size_t rows = 0;
    static_cast<void>(pending_.Scan(
        Table::kTimers,
        storage::TimerKey(from, JobId{}),
        storage::TimerKey(WallTime::max(), JobId{}),
        [&](std::string_view key, std::string_view value) {
          const bool is_last = !pending_.IsChanging(Table::kTimers, key) && consider(key, value);
          return !is_last && ++rows < kNextDueRowsMax;
        }));
    return rows == kNextDueRowsMax;
  };
  const WallTime first = std::max(FirstKeyNotDue(), low_water_mark_.durable());
  if (look_from(first)) {
    look_from(std::max(first, LatestKeyOfNow() + Millis(1)));
  }
  return next;
}

// Looks at each queue once: there may be 10,000 empty ones.
void EngineCore::NameQueues(size_t queues_max, EngineFigures* figures) const {
  const auto may_be_named = [](const Queue& queue) { return queue.stored && queue.name != kOther; };
  const auto has_room = [&] { return figures->queues.size() < queues_max; };
  const auto name = [&](const Queue& queue) {
    figures->queues.push_back(ViewOfQueue(queue));
    TakeFrom(&figures->other, figures->queues.back());
  };
  std::vector<const Queue*> idle;
  queues_.ForEachFrom(0, [&](const Queue& queue) {
    if (!has_room()) {
      return false;
    }
    if (HasWork(queue)) {
      if (may_be_named(queue)) {
        name(queue);
      }
    } else if (idle.size() < queues_max && may_be_named(queue)) {
      idle.push_back(&queue);
    }
    return true;
  });
  for (size_t i = 0; i < idle.size() && has_room(); ++i) {
    name(*idle[i]);
  }
}

EngineFigures EngineCore::Figures(size_t queues_max) const {
  EngineFigures figures{.totals = stats(),
                        .lateness_ms = lateness_ms_,
                        .jobs_in_memory = jobs_.size(),
                        .jobs_in_memory_max = options_.memory_jobs_max,
                        .all_in_memory = FirstOnDisk() == kNothingFar,
                        .uncommitted_bytes = pending_.uncommitted_bytes(),
                        .replies_parked = parked_.size()};
  figures.other = {.name = std::string(kOther),
                   .scheduled = figures.totals.scheduled,
                   .ready = figures.totals.ready,
                   .leased = figures.totals.leased,
                   .dead = figures.totals.dead};
  NameQueues(queues_max, &figures);
  user_jobs_.ForEach([&](const std::string& user, uint64_t jobs) {
    if (figures.users.size() < queues_max) {
      figures.users.emplace_back(user, jobs);
    } else {
      figures.other_users += jobs;
    }
  });
  figures.frontier_ahead =
      std::min(std::max(frontier_.first, std::min(far_begins_, now_.wall + options_.horizon)),
               lagging_.first()) -
      now_.wall;
  return figures;
}

}  // namespace delayd::engine

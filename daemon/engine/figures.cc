// What the engine tells an operator's monitoring.
#include <algorithm>
#include <utility>

#include "daemon/engine/engine_core.h"
#include "daemon/engine/engine_figures.h"

namespace delayd::engine {

namespace {

// A queue that bears the name of the sum is part of it: two series of one name would be an error.
constexpr std::string_view kOther = "other";

void TakeFrom(QueueView* sum, const QueueView& one) {
  sum->scheduled -= one.scheduled;
  sum->ready -= one.ready;
  sum->leased -= one.leased;
  sum->dead -= one.dead;
}

}  // namespace

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
  queues_.ForEachFrom(0, [&](const Queue& queue) {
    const bool has_room = figures.queues.size() < queues_max;
    if (has_room && queue.stored && queue.name != kOther) {
      figures.queues.push_back(ViewOfQueue(queue));
      TakeFrom(&figures.other, figures.queues.back());
    }
    return has_room;
  });
  user_jobs_.ForEach([&](const std::string& user, uint64_t jobs) {
    if (figures.users.size() < queues_max) {
      figures.users.emplace_back(user, jobs);
    } else {
      figures.other_users += jobs;
    }
  });
  figures.frontier_ahead =
      std::max(frontier_.first, std::min(far_begins_, now_.wall + options_.horizon)) - now_.wall;
  return figures;
}

}  // namespace delayd::engine

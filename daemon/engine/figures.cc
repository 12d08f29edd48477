// What the engine tells an operator's monitoring.
#include <algorithm>
#include <utility>
#include <vector>

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

// Else nobody would miss its name.
bool HasWork(const Queue& queue) {
  return queue.counts.pending != 0 || queue.counts.dead != 0 || queue.pause;
}

}  // namespace

// One look at each: there may be 10,000 empty ones.
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

#include "cli/verbs/list_filter.h"

#include <iterator>
#include <utility>

#include "base/job.h"
#include "protocol/nearest.h"

namespace delayd::cli {

void ListFilter::Declare(Options* options) {
  options->Text("--queue", "QUEUE", &filter_.queue, "only this queue");
  options->Text("--state",
                "STATE",
                &filter_.state,
                "scheduled, ready, leased, dead or finished (the first three)",
                {"scheduled", "ready", "leased", "dead", "finished"});
  options->TimeOrDuration(
      "--due-before", &filter_.due_before, "due before this time, or this duration from now");
  options->TimeOrDuration(
      "--due-after", &filter_.due_after, "due at or after this time, or this duration from now");
  options->Text("--key-prefix", "TEXT", &filter_.key_prefix, "only keys that begin so");
}

StatusOr<protocol::JobFilterText> ListFilter::Resolve() const {
  if (filter_.queue.has_value()) {
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(*filter_.queue));
  }
  if (filter_.state.has_value() && !ParseJobState(*filter_.state).has_value()) {
    return UsageError("--state: " + protocol::Quoted(*filter_.state) +
                      " is no state; use scheduled, ready, leased, dead or finished");
  }
  return filter_;
}

StatusOr<std::vector<protocol::JobFilterText>> Expand(Api& api,
                                                      const protocol::JobFilterText& filter) {
  if (filter.queue.has_value() || filter.state != JobStateName(JobState::kDead)) {
    return std::vector<protocol::JobFilterText>{filter};
  }
  DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::QueueCounts> queues, api.Queues());
  std::vector<protocol::JobFilterText> filters;
  for (const protocol::QueueCounts& queue : queues) {
    if (queue.dead > 0) {
      filters.push_back(filter);
      filters.back().queue = queue.name;
    }
  }
  return filters;
}

StatusOr<protocol::JobPage> FirstJobs(Api& api,
                                      std::span<const protocol::JobFilterText> filters,
                                      uint64_t limit) {
  protocol::JobPage all;
  for (const protocol::JobFilterText& filter : filters) {
    const uint64_t left = limit - all.jobs.size();
    if (left == 0) {
      all.next_cursor = protocol::kFirstPageCursor;  // of the next queue
      break;
    }
    DELAYD_ASSIGN_OR_RETURN(protocol::JobPage some, api.ListUpTo(filter, left));
    std::move(some.jobs.begin(), some.jobs.end(), std::back_inserter(all.jobs));
    all.next_cursor = std::move(some.next_cursor);
  }
  return all;
}

}  // namespace delayd::cli

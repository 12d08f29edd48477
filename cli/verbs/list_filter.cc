#include "cli/verbs/list_filter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/job.h"
#include "base/limits.h"
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

StatusOr<ListEnd> TakeJobs(Api& api,
                           std::span<const protocol::JobFilterText> filters,
                           uint64_t limit,
                           const std::function<Status(std::vector<JobView> jobs)>& take,
                           bool with_payload) {
  std::string cursor;
  size_t i = 0;
  while (i < filters.size() && limit > 0) {
    DELAYD_ASSIGN_OR_RETURN(protocol::JobPage page,
                            api.List({.filter = filters[i],
                                      .with_payload = with_payload,
                                      .limit = std::min<uint64_t>(limit, limits::kListLimitMax),
                                      .cursor = std::move(cursor)}));
    limit -= std::min<uint64_t>(limit, page.jobs.size());
    DELAYD_RETURN_IF_ERROR(take(std::move(page.jobs)));
    // A page may be empty and have a next one: the daemon looks at a bounded number of rows.
    cursor = std::move(page.next_cursor);
    i += cursor.empty() ? 1U : 0U;
  }
  if (i == filters.size()) {
    return ListEnd{};
  }
  if (cursor.empty()) {
    cursor = protocol::kFirstPageCursor;  // one queue's jobs end with the list; the next has more
  }
  return ListEnd{std::move(cursor), filters[i].queue.value_or("")};
}

StatusOr<protocol::JobPage> FirstJobs(Api& api,
                                      std::span<const protocol::JobFilterText> filters,
                                      uint64_t limit) {
  protocol::JobPage all;
  DELAYD_ASSIGN_OR_RETURN(ListEnd end,
                          TakeJobs(api, filters, limit, [&all](std::vector<JobView> jobs) {
                            std::move(jobs.begin(), jobs.end(), std::back_inserter(all.jobs));
                            return OkStatus();
                          }));
  all.next_cursor = std::move(end.cursor);
  return all;
}

}  // namespace delayd::cli

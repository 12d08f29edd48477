#include "cli/verbs/list_filter.h"

#include "base/job.h"
#include "protocol/nearest.h"

namespace delayd::cli {
void ListFilter::Declare(Options* options) {
  options->Text("--queue", "QUEUE", &query_.queue, "only this queue");
  options->Text("--state",
                "STATE",
                &query_.state,
                "scheduled, ready, leased, dead or finished (the first three)");
  options->TimeOrDuration(
      "--due-before", &query_.due_before, "due before this time, or this duration from now");
  options->TimeOrDuration(
      "--due-after", &query_.due_after, "due at or after this time, or this duration from now");
  options->Text("--key-prefix", "TEXT", &query_.key_prefix, "only keys that begin so");
}

StatusOr<ListQuery> ListFilter::Resolve() const {
  if (query_.queue.has_value()) {
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(*query_.queue));
  }
  if (query_.state.has_value() && !ParseJobState(*query_.state).has_value()) {
    return UsageError("--state: " + protocol::Quoted(*query_.state) +
                      " is no state; use scheduled, ready, leased, dead or finished");
  }
  return query_;
}

StatusOr<std::vector<ListQuery>> ListFilter::Expand(Api& api, const ListQuery& query) {
  if (query.queue.has_value() || query.state != JobStateName(JobState::kDead)) {
    return std::vector<ListQuery>{query};
  }
  DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::QueueCounts> queues, api.Queues());
  std::vector<ListQuery> queries;
  for (const protocol::QueueCounts& queue : queues) {
    if (queue.dead > 0) {
      queries.push_back(query);
      queries.back().queue = queue.name;
    }
  }
  return queries;
}

}  // namespace delayd::cli

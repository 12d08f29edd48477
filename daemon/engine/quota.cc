// How many jobs a queue and a user may have stored, in whatever state: buried jobs take room as
// well. Only new jobs are refused.
#include "daemon/engine/engine_core.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// A batch that is larger than the room that is left may be refused for ever, however many jobs get
// done.
std::string AdviceFor(uint64_t stored, uint64_t most) {
  const std::string room =
      stored < most ? "send at most " + std::to_string(most - stored) + " at once, " : "";
  return "; " + room + "try again when some are done, cancel some,";
}

}  // namespace

Status EngineCore::CheckQuotas(const Enqueue& command, const std::vector<EnqueuePlan>& plans) {
  boost::unordered_flat_map<std::string_view, uint64_t> added;  // to queues that have a quota
  uint64_t all = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].existed()) {
      continue;
    }
    ++all;
    const std::string& name = command.jobs[i].queue;
    const Queue* queue = queues_.Find(name);
    const uint64_t most = queue != nullptr ? queue->settings.max_jobs : SettingsFor(name).max_jobs;
    if (most == 0) {
      continue;
    }
    const uint64_t stored = queue != nullptr ? queue->counts.pending + queue->counts.dead : 0;
    if (stored + ++added[name] > most) {
      return ResourceExhausted("queue " + name + " holds " + std::to_string(stored) +
                                   (stored == 1 ? " job" : " jobs") + " and may hold " +
                                   std::to_string(most) + AdviceFor(stored, most) +
                                   " or raise its max_jobs",
                               "queue_full");
    }
  }
  const uint64_t stored = user_jobs_.Of(command.user);
  if (command.user_jobs_max != 0 && all != 0 && stored + all > command.user_jobs_max) {
    return ResourceExhausted("user " + command.user + " has " + std::to_string(stored) +
                                 (stored == 1 ? " job" : " jobs") + " stored and may have " +
                                 std::to_string(command.user_jobs_max) +
                                 AdviceFor(stored, command.user_jobs_max) +
                                 " or have limits.jobs_per_user raised",
                             "user_full");
  }
  return OkStatus();
}

void EngineCore::PutUserCounts() {
  user_jobs_.TakeChanged([this](const std::string& user, uint64_t jobs) {
    const std::string key = storage::UserJobsKey(user);
    if (jobs != 0) {
      pending_.Put(Table::kMeta, key, storage::EncodeNumber(key, jobs));
    } else {
      pending_.Delete(Table::kMeta, key);
    }
  });
}

Status EngineCore::LoadUsers() {
  Status failed;
  DELAYD_RETURN_IF_ERROR(store_.Scan(Table::kMeta,
                                     storage::kUserJobsPrefix,
                                     storage::kUserJobsEnd,
                                     [&](std::string_view key, std::string_view value) {
                                       const auto jobs = storage::DecodeNumber(key, value);
                                       failed = jobs.status();
                                       if (jobs.ok()) {
                                         user_jobs_.Restore(storage::UserOfKey(key), *jobs);
                                       }
                                       return failed.ok();
                                     }));
  return failed;
}

}  // namespace delayd::engine

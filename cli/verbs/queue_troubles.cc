#include "cli/verbs/queue_troubles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cli/human_time.h"

namespace delayd::cli {
namespace {

constexpr size_t kTold = 3;
// Of those with most due jobs: how long they wait takes a request for each.
constexpr size_t kAged = 20;
constexpr Millis kSecondLook{1000};
// A worker that polls comes by sooner, and one with a long job is done by then.
constexpr Millis kPollPatience{5000};
constexpr Millis kFullPatience{60'000};

using protocol::QueueCounts;

enum class Cause : uint8_t { kPaused, kNobodyAsks, kFull };

struct Suspect {
  QueueCounts queue;
  Cause cause = Cause::kPaused;
  std::optional<Millis> oldest;  // how long it has been due
};

std::optional<Cause> CauseOf(const QueueCounts& queue, uint64_t waiting) {
  if (queue.ready == 0) {
    return std::nullopt;
  }
  if (queue.paused) {
    return Cause::kPaused;
  }
  if (queue.leased == 0) {
    // A rate keeps due jobs from a worker that waits for them.
    return queue.rate.empty() || waiting == 0 ? std::optional(Cause::kNobodyAsks) : std::nullopt;
  }
  return queue.concurrency != 0 && queue.leased >= queue.concurrency ? std::optional(Cause::kFull)
                                                                     : std::nullopt;
}

std::vector<Suspect> SuspectsAmong(const std::vector<QueueCounts>& queues, uint64_t waiting) {
  std::vector<Suspect> suspects;
  for (const QueueCounts& queue : queues) {
    if (const std::optional<Cause> cause = CauseOf(queue, waiting)) {
      suspects.push_back({queue, *cause, std::nullopt});
    }
  }
  std::ranges::stable_sort(
      suspects, std::greater<>(), [](const Suspect& suspect) { return suspect.queue.ready; });
  return suspects;
}

// Those where it is still so, and nothing was acked meanwhile.
StatusOr<std::vector<Suspect>> LookAgain(Api* api,
                                         std::vector<Suspect> before,
                                         uint64_t waiting,
                                         const Context& context) {
  const bool all_paused = std::ranges::all_of(
      before, [](const Suspect& suspect) { return suspect.cause == Cause::kPaused; });
  if (all_paused) {
    return before;
  }
  context.sleep(kSecondLook);
  DELAYD_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, api->Queues());
  std::map<std::string, Suspect> earlier;
  for (Suspect& suspect : before) {
    earlier.emplace(suspect.queue.name, std::move(suspect));
  }
  std::vector<Suspect> suspects = SuspectsAmong(queues, waiting);
  std::erase_if(suspects, [&](const Suspect& suspect) {
    const auto found = earlier.find(suspect.queue.name);
    return found == earlier.end() || found->second.cause != suspect.cause ||
           found->second.queue.acked != suspect.queue.acked;
  });
  return suspects;
}

// False: what was due has gone, or has not waited for long. An age that is not known is left out.
bool HasWaited(Api* api, Millis poll_patience, const Context& context, Suspect* suspect) {
  const StatusOr<protocol::JobPage> page =
      api->ListUpTo({.queue = suspect->queue.name, .state = "ready"}, 1);
  if (!page.ok()) {
    return true;
  }
  if (page->jobs.empty()) {
    return false;
  }
  suspect->oldest = std::max(context.DaemonNow() - page->jobs.front().due, Millis(0));
  const Millis patience = suspect->cause == Cause::kPaused       ? Millis(0)
                          : suspect->cause == Cause::kNobodyAsks ? poll_patience
                                                                 : kFullPatience;
  return *suspect->oldest >= patience;
}

QueueTroubles::Trouble Tell(const Suspect& suspect) {
  const QueueCounts& queue = suspect.queue;
  const std::string oldest =
      suspect.oldest ? ", the oldest for " + RoughDuration(*suspect.oldest) : "";
  const std::string due = "queue " + queue.name + " has " + Jobs(queue.ready) + " due" + oldest;
  switch (suspect.cause) {
    case Cause::kPaused: {
      const std::string left =
          queue.pause_left ? " for another " + RoughDuration(*queue.pause_left) : "";
      return {due + ", and is paused" + left, "delayctl resume " + queue.name};
    }
    case Cause::kNobodyAsks:
      return {due + ", and no worker asks for them",
              "start a worker: delayctl work --queue " + queue.name + " --exec COMMAND"};
    case Cause::kFull:
      return {due + ", and as many are leased as its concurrency allows: " +
                  std::to_string(queue.leased),
              "who has them: delayctl list --queue " + queue.name +
                  " --state leased; or raise "
                  "its concurrency"};
  }
  return {};
}

}  // namespace

StatusOr<QueueTroubles> FindQueueTroubles(Api* api, uint64_t waiting, const Context& context) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, api->Queues());
  const bool is_any_leased =
      std::ranges::any_of(queues, [](const QueueCounts& queue) { return queue.leased != 0; });
  DELAYD_ASSIGN_OR_RETURN(std::vector<Suspect> suspects,
                          LookAgain(api, SuspectsAmong(queues, waiting), waiting, context));
  QueueTroubles troubles{.worst = {}, .others = suspects.size() - std::min(suspects.size(), kAged)};
  suspects.resize(suspects.size() - troubles.others);
  // Where nobody asks for anything, nobody polls either.
  const Millis poll_patience = waiting != 0 || is_any_leased ? kPollPatience : Millis(0);
  std::erase_if(suspects, [&](Suspect& suspect) {
    return !HasWaited(api, poll_patience, context, &suspect);
  });
  std::ranges::stable_sort(
      suspects, std::greater<>(), [](const Suspect& suspect) { return suspect.oldest; });
  for (const Suspect& suspect : suspects) {
    if (troubles.worst.size() < kTold) {
      troubles.worst.push_back(Tell(suspect));
    } else {
      ++troubles.others;
    }
  }
  return troubles;
}

}  // namespace delayd::cli

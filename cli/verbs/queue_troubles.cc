#include "cli/verbs/queue_troubles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "cli/human_time.h"
#include "cli/metrics_page.h"
#include "cli/shell_word.h"

namespace delayd::cli {
namespace {

constexpr size_t kTold = 3;
// How many queues to ask about their jobs, one request each. For the age of the oldest due one they
// are those with the most due jobs, if none has one of the oldest jobs of all.
constexpr size_t kAsked = 20;
constexpr Millis kSecondLook{1000};
// How long jobs must have waited for a report: by kPollPatience a polling worker has come by, by
// kFullPatience a worker with a long job is done.
constexpr Millis kPollPatience{5000};
constexpr Millis kFullPatience{60'000};

using protocol::QueueCounts;

enum class Cause : uint8_t { kPaused, kNobodyAsks, kFull, kNobodyAsksForMore, kFails };

struct Suspect {
  QueueCounts queue;
  Cause cause = Cause::kPaused;
  uint64_t failed = 0;           // failed attempts between the looks
  uint64_t died = 0;             // jobs that died meanwhile
  std::optional<Millis> oldest;  // how long its oldest ready job has been due
};

std::optional<Cause> CauseOf(const QueueCounts& queue, uint64_t waiting) {
  if (queue.sound() == 0) {
    return std::nullopt;  // the damaged ones are told of elsewhere
  }
  if (queue.paused) {
    return Cause::kPaused;
  }
  if (queue.leased == 0) {
    // A rate may hold due jobs back from a worker that waits for them.
    return queue.rate.empty() || waiting == 0 ? std::optional(Cause::kNobodyAsks) : std::nullopt;
  }
  if (queue.concurrency != 0 && queue.leased >= queue.concurrency) {
    return Cause::kFull;
  }
  return queue.rate.empty() ? std::optional(Cause::kNobodyAsksForMore) : std::nullopt;
}

std::vector<Suspect> SuspectsAmong(const std::vector<QueueCounts>& queues, uint64_t waiting) {
  std::vector<Suspect> suspects;
  for (const QueueCounts& queue : queues) {
    if (const std::optional<Cause> cause = CauseOf(queue, waiting)) {
      suspects.push_back({.queue = queue, .cause = *cause});
    }
  }
  std::ranges::stable_sort(
      suspects, std::greater<>(), [](const Suspect& suspect) { return suspect.queue.ready; });
  return suspects;
}

using HandOuts = std::map<std::string, double, std::less<>>;

// Hand-outs per queue since the daemon started, without the queues that it does not name.
HandOuts HandOutsSoFar(Api* api) {
  const StatusOr<std::string> page = api->Metrics();
  return page.ok() ? FiguresByQueue(*page, "delayd_queue_handed_out_total") : HandOuts();
}

// None when the daemon does not tell, or was restarted meanwhile.
std::optional<int64_t> HandedOut(const std::string& queue,
                                 const HandOuts& before,
                                 const HandOuts& after) {
  const auto from = before.find(queue);
  const auto to = after.find(queue);
  return from == before.end() || to == after.end() || to->second < from->second
             ? std::nullopt
             : std::optional(static_cast<int64_t>(to->second - from->second));
}

// False when its jobs reach a worker that acks them, or may do so.
bool IsStillSo(const Suspect& before, std::optional<int64_t> handed_out, Suspect* now) {
  const QueueCounts& was = before.queue;
  const QueueCounts& is = now->queue;
  if (now->cause == Cause::kPaused) {
    return before.cause == Cause::kPaused;
  }
  if (was.acked != is.acked) {
    return false;
  }
  if (!handed_out) {
    // In a busy queue, jobs that fall due may replace those that are handed out.
    return before.cause == now->cause && now->cause != Cause::kNobodyAsksForMore &&
           was.dead == is.dead && was.ready <= is.ready;
  }
  if (*handed_out == 0) {
    return before.cause == now->cause;
  }
  // Handed out, no longer leased, and not acked.
  const int64_t failed =
      *handed_out + static_cast<int64_t>(was.leased) - static_cast<int64_t>(is.leased);
  now->cause = Cause::kFails;
  now->failed = static_cast<uint64_t>(std::max<int64_t>(failed, 0));
  now->died = is.dead - std::min(was.dead, is.dead);
  return failed > 0;
}

// The suspects that still look so. Hand-outs are counted between the two looks: the jobs handed out
// then appear in the counts as leased, acked or failed.
StatusOr<std::vector<Suspect>> LookAgain(Api* api,
                                         std::vector<Suspect> before,
                                         uint64_t waiting,
                                         const Context& context) {
  const bool all_paused = std::ranges::all_of(
      before, [](const Suspect& suspect) { return suspect.cause == Cause::kPaused; });
  if (all_paused) {
    return before;
  }
  const HandOuts from = HandOutsSoFar(api);
  context.sleep(kSecondLook);
  const HandOuts to = HandOutsSoFar(api);
  DELAYD_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, api->Queues());
  std::map<std::string, Suspect> earlier;
  for (Suspect& suspect : before) {
    earlier.emplace(suspect.queue.name, std::move(suspect));
  }
  std::vector<Suspect> suspects = SuspectsAmong(queues, waiting);
  std::erase_if(suspects, [&](Suspect& suspect) {
    const std::string& name = suspect.queue.name;
    const auto found = earlier.find(name);
    return found == earlier.end() || !IsStillSo(found->second, HandedOut(name, from, to), &suspect);
  });
  return suspects;
}

Millis PatienceWith(Cause cause, Millis poll_patience) {
  switch (cause) {
    case Cause::kPaused:
      return Millis(0);
    case Cause::kNobodyAsks:
      return poll_patience;
    case Cause::kFails:
      return kPollPatience;
    case Cause::kFull:
    case Cause::kNobodyAsksForMore:
      break;
  }
  return kFullPatience;
}

void NoteAge(const JobView& job, const Context& context, Suspect* suspect) {
  suspect->oldest =
      std::max({context.DaemonNow() - job.due, Millis(0), suspect->oldest.value_or(Millis(0))});
}

// Puts first the queues with one of the oldest due jobs of all, which would be lost among fuller
// queues.
void OldestFirst(Api* api, const Context& context, std::vector<Suspect>* suspects) {
  const StatusOr<protocol::JobPage> page = api->ListUpTo({.state = "ready"}, limits::kListLimitMax);
  if (!page.ok()) {
    return;
  }
  std::map<std::string_view, Suspect*> by_name;
  for (Suspect& suspect : *suspects) {
    by_name.emplace(suspect.queue.name, &suspect);
  }
  for (const JobView& job : page->jobs) {
    if (const auto found = by_name.find(job.queue); found != by_name.end()) {
      NoteAge(job, context, found->second);
    }
  }
  std::ranges::stable_sort(
      *suspects, std::greater<>(), [](const Suspect& suspect) { return suspect.oldest; });
}

// Keeps the suspects whose age is known or may be asked for; returns how many are left out.
uint64_t LeaveOut(Api* api, const Context& context, std::vector<Suspect>* suspects) {
  if (suspects->size() <= kAsked) {
    return 0;
  }
  OldestFirst(api, context, suspects);
  const auto first_unknown = std::ranges::find_if(
      *suspects, [](const Suspect& suspect) { return !suspect.oldest.has_value(); });
  const auto asked = std::min<ptrdiff_t>(kAsked, suspects->end() - first_unknown);
  const auto left = static_cast<size_t>(first_unknown - suspects->begin() + asked);
  const uint64_t others = suspects->size() - left;
  suspects->resize(left);
  return others;
}

// False when the due jobs are gone or have not waited for long. True when the age cannot be read.
bool HasWaited(Api* api, Millis poll_patience, const Context& context, Suspect* suspect) {
  if (!suspect->oldest) {
    const StatusOr<protocol::JobPage> page =
        api->ListUpTo({.queue = suspect->queue.name, .state = "ready"}, 1);
    if (!page.ok()) {
      return true;
    }
    if (page->jobs.empty()) {
      return false;
    }
    NoteAge(page->jobs.front(), context, suspect);
  }
  return *suspect->oldest >= PatienceWith(suspect->cause, poll_patience);
}

std::string HowItFails(const Suspect& suspect) {
  std::string how = "its jobs fail: " + std::to_string(suspect.failed) +
                    (suspect.failed == 1 ? " attempt" : " attempts") +
                    " within a second, and no ack";
  if (suspect.died != 0) {
    how += "; " + std::to_string(suspect.died) + (suspect.died == 1 ? " more is" : " more are") +
           " dead";
  }
  return how;
}

// The state to look in for the failed jobs; ready ones have mostly not been tried.
std::string_view StateOfFailed(const Suspect& suspect) {
  return suspect.died != 0 ? "dead" : suspect.queue.scheduled != 0 ? "scheduled" : "ready";
}

QueueTroubles::Trouble Tell(const Suspect& suspect) {
  const QueueCounts& queue = suspect.queue;
  const std::string name = ShellWord(queue.name);
  const std::string oldest =
      suspect.oldest ? ", the oldest for " + RoughDuration(*suspect.oldest) : "";
  const std::string due = "queue " + queue.name + " has " + Jobs(queue.sound()) + " due" + oldest;
  switch (suspect.cause) {
    case Cause::kPaused: {
      const std::string left =
          queue.pause_left ? " for another " + RoughDuration(*queue.pause_left) : "";
      return {due + ", and is paused" + left, "delayctl resume " + name};
    }
    case Cause::kNobodyAsks:
      return {due + ", and no worker asks for them",
              "start a worker: delayctl work --queue " + name + " --exec COMMAND"};
    case Cause::kFull:
      return {due + ", and as many are leased as its concurrency allows: " +
                  std::to_string(queue.leased),
              "who has them: delayctl list --queue " + name +
                  " --state leased; or raise "
                  "its concurrency"};
    case Cause::kNobodyAsksForMore:
      return {due + ", and no worker asks for them while " + std::to_string(queue.leased) +
                  (queue.leased == 1 ? " is" : " are") + " leased",
              "is who has those still there: delayctl list --queue " + name +
                  " --state leased; or start more workers"};
    case Cause::kFails:
      return {due + ", and " + HowItFails(suspect),
              "see why: delayctl list --queue " + name + " --state " +
                  std::string(StateOfFailed(suspect)) + " -o wide"};
  }
  return {};
}

// Of its scheduled jobs, as many as one page has: those that are due first. False if none is left.
StatusOr<bool> WereAllTried(Api* api, const std::string& queue) {
  DELAYD_ASSIGN_OR_RETURN(
      const protocol::JobPage page,
      api->ListUpTo({.queue = queue, .state = "scheduled"}, limits::kListLimitMax));
  return !page.jobs.empty() &&
         std::ranges::all_of(page.jobs, [](const JobView& job) { return job.attempt != 0; });
}

}  // namespace

StatusOr<QueueTroubles> FindQueueTroubles(Api* api, uint64_t waiting, const Context& context) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, api->Queues());
  const bool is_any_leased =
      std::ranges::any_of(queues, [](const QueueCounts& queue) { return queue.leased != 0; });
  DELAYD_ASSIGN_OR_RETURN(std::vector<Suspect> suspects,
                          LookAgain(api, SuspectsAmong(queues, waiting), waiting, context));
  QueueTroubles troubles{.worst = {}, .unknown = LeaveOut(api, context, &suspects)};
  // If no lease request waits and no job is leased anywhere, nobody polls either.
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

StatusOr<QueueTroubles> FindFailingQueues(Api* api, std::string_view metrics) {
  const HandOuts handed_out = FiguresByQueue(metrics, "delayd_queue_handed_out_total");
  DELAYD_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, api->Queues());
  QueueTroubles troubles;
  size_t asked = 0;
  for (const QueueCounts& queue : queues) {
    const auto figure = handed_out.find(queue.name);
    const auto tries = static_cast<uint64_t>(figure == handed_out.end() ? 0 : figure->second);
    // With fewer hand-outs than jobs, some of them have not been tried.
    if (queue.sound() != 0 || queue.leased != 0 || queue.scheduled == 0 || queue.acked != 0 ||
        tries < queue.scheduled) {
      continue;
    }
    if (troubles.worst.size() == kTold || asked == kAsked) {
      ++troubles.unknown;
      continue;
    }
    ++asked;
    DELAYD_ASSIGN_OR_RETURN(const bool all_tried, WereAllTried(api, queue.name));
    if (all_tried) {
      troubles.worst.push_back({"queue " + queue.name + " has " + Jobs(queue.scheduled) +
                                    " waiting for another attempt, and none was acked since the "
                                    "daemon started",
                                "see why: delayctl list --queue " + ShellWord(queue.name) +
                                    " --state scheduled -o wide"});
    }
  }
  return troubles;
}

}  // namespace delayd::cli

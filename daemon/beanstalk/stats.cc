#include "daemon/beanstalk/stats.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "protocol/beanstalk/reply_writer.h"

#include <sys/resource.h>
#include <sys/utsname.h>

namespace delayd::beanstalk {
namespace {

uint64_t Seconds(Millis duration) {
  return static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0) / 1000);
}

// Only delayctl pauses without an end; 0 would say that the tube is not paused. A pause of this
// protocol that is meant to last for ever is capped at the same longest time.
uint64_t SecondsOfPause(const engine::QueueView& queue, std::optional<Millis> timed) {
  const Millis endless = queue.paused ? Millis(limits::kDelayMsMax) : Millis(0);
  return Seconds(timed.value_or(endless));
}

// "12.034567"
std::string CpuTime(const timeval& time) {
  constexpr size_t kMicrosDigits = 6;
  std::string micros = std::to_string(time.tv_usec);
  micros.insert(0, kMicrosDigits - std::min(micros.size(), kMicrosDigits), '0');
  return std::to_string(time.tv_sec) + "." + micros;
}

std::string_view StateWord(JobState state) {
  switch (state) {
    case JobState::kScheduled:
      return "delayed";
    case JobState::kReady:
      return "ready";
    case JobState::kLeased:
      return "reserved";
    default:
      return "buried";
  }
}

constexpr auto kCounted = std::to_array<std::pair<std::string_view, Verb>>({
    {"cmd-peek", Verb::kPeek},
    {"cmd-peek-ready", Verb::kPeekReady},
    {"cmd-peek-delayed", Verb::kPeekDelayed},
    {"cmd-peek-buried", Verb::kPeekBuried},
    {"cmd-reserve", Verb::kReserve},
    {"cmd-reserve-with-timeout", Verb::kReserveWithTimeout},
    {"cmd-delete", Verb::kDelete},
    {"cmd-release", Verb::kRelease},
    {"cmd-use", Verb::kUse},
    {"cmd-watch", Verb::kWatch},
    {"cmd-ignore", Verb::kIgnore},
    {"cmd-bury", Verb::kBury},
    {"cmd-kick", Verb::kKick},
    {"cmd-touch", Verb::kTouch},
    {"cmd-stats", Verb::kStats},
    {"cmd-stats-job", Verb::kStatsJob},
    {"cmd-stats-tube", Verb::kStatsTube},
    {"cmd-list-tubes", Verb::kListTubes},
    {"cmd-list-tube-used", Verb::kListTubeUsed},
    {"cmd-list-tubes-watched", Verb::kListTubesWatched},
    {"cmd-pause-tube", Verb::kPauseTube},
});

void AddCommands(const Hub& hub, YamlMap* map) {
  map->Add("cmd-put",
           hub.count(Verb::kPut) + hub.count(Verb::kPutMs) + hub.count(Verb::kPutKey) +
               hub.count(Verb::kPutBatch));
  const auto ours_like = [&hub](Verb verb) -> uint64_t {
    switch (verb) {
      case Verb::kDelete:
        return hub.count(Verb::kDeleteKey) + hub.count(Verb::kDeleteBatch);
      case Verb::kReserveWithTimeout:
        return hub.count(Verb::kReserveBatch);
      default:
        return 0;
    }
  };
  for (const auto& [name, verb] : kCounted) {
    map->Add(name, hub.count(verb) + ours_like(verb));
  }
}

void AddProcess(const Hub& hub, const Now& now, YamlMap* map) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  map->Add("pid", static_cast<uint64_t>(::getpid()));
  map->AddWord("version", hub.options().version);
  map->AddWord("rusage-utime", CpuTime(usage.ru_utime));
  map->AddWord("rusage-stime", CpuTime(usage.ru_stime));
  map->Add("uptime", Seconds(now.boot - hub.options().started));
}

// There is no binlog to describe in these terms, but clients expect the fields.
void AddLog(YamlMap* map, const engine::StatsView& stats) {
  map->Add("binlog-oldest-index", 0);
  map->Add("binlog-current-index", 0);
  map->Add("binlog-records-migrated", 0);
  map->Add("binlog-records-written", stats.commits);
  map->Add("binlog-max-size", 0);
}

void AddMachine(const Hub& hub, bool draining, YamlMap* map) {
  utsname system{};
  ::uname(&system);
  map->AddWord("draining", draining ? "true" : "false");
  map->AddWord("id", hub.instance());
  map->Add("hostname", std::string_view(system.nodename));
  map->Add("os", std::string_view(system.version));
  map->Add("platform", std::string_view(system.machine));
}

// Whether the tube exists even if no connection uses or watches it.
bool IsThere(const engine::QueueView& queue) {
  return queue.scheduled + queue.ready + queue.leased + queue.dead > 0 || queue.paused ||
         queue.name == kDefaultTube;
}

}  // namespace

std::string StatsOf(const Hub& hub, const engine::StatsView& stats, const Now& now) {
  YamlMap map;
  map.Add("current-jobs-urgent", stats.urgent);
  map.Add("current-jobs-ready", stats.ready);
  map.Add("current-jobs-reserved", stats.leased);
  map.Add("current-jobs-delayed", stats.scheduled);
  map.Add("current-jobs-buried", stats.dead);
  AddCommands(hub, &map);
  map.Add("job-timeouts", stats.lease_expired);
  map.Add("total-jobs", stats.enqueued);
  map.Add("max-job-size", hub.options().job_bytes_max);
  map.Add("current-tubes", stats.queues);
  map.Add("current-connections", hub.connections);
  map.Add("current-producers", hub.producers);
  map.Add("current-workers", hub.workers);
  map.Add("current-waiting", hub.waiting);
  map.Add("total-connections", hub.connections_total);
  AddProcess(hub, now, &map);
  AddLog(&map, stats);
  AddMachine(hub, stats.draining, &map);
  return map.text();
}

std::string StatsOfJob(const JobView& job, const Now& now) {
  YamlMap map;
  map.Add("id", ToInt(job.id));
  map.Add("tube", job.queue);
  map.AddWord("state", StateWord(job.state));
  map.Add("pri", job.priority);
  map.Add("age", Seconds(now.wall - job.created));
  map.Add("delay", Seconds(job.delay.value_or(Millis(0))));
  map.Add("ttr", Seconds(job.lease));
  map.Add("time-left", Seconds(job.time_left.value_or(Millis(0))));
  map.Add("file", 0);
  map.Add("reserves", job.reserves);
  map.Add("timeouts", job.timeouts);
  map.Add("releases", job.releases);
  map.Add("buries", job.buries);
  map.Add("kicks", job.kicks);
  return map.text();
}

std::optional<std::string> StatsOfTube(const Hub& hub,
                                       std::string_view name,
                                       const engine::QueueView* queue) {
  const Tube* const tube = hub.Find(name);
  const bool is_there =
      tube != nullptr || name == kDefaultTube || (queue != nullptr && IsThere(*queue));
  if (!is_there) {
    return std::nullopt;
  }
  const engine::QueueView none;
  const engine::QueueView& jobs = queue != nullptr ? *queue : none;
  YamlMap map;
  map.Add("name", name);
  map.Add("current-jobs-urgent", jobs.urgent);
  map.Add("current-jobs-ready", jobs.ready);
  map.Add("current-jobs-reserved", jobs.leased);
  map.Add("current-jobs-delayed", jobs.scheduled);
  map.Add("current-jobs-buried", jobs.dead);
  map.Add("total-jobs", jobs.enqueued);
  map.Add("current-using", tube != nullptr ? tube->using_count : 0);
  map.Add("current-watching", tube != nullptr ? tube->watching : 0);
  map.Add("current-waiting", tube != nullptr ? tube->waiting : 0);
  map.Add("cmd-delete", jobs.acked + jobs.cancelled);
  map.Add("cmd-pause-tube", jobs.pauses);
  map.Add("pause", SecondsOfPause(jobs, jobs.pause_length));
  map.Add("pause-time-left", SecondsOfPause(jobs, jobs.pause_left));
  return map.text();
}

void TubeList::Add(const std::string& name) {
  constexpr size_t kNodeBytes = 80;
  if (name != kDefaultTube && names_.insert(name).second) {
    bytes_ += kNodeBytes + name.size();
  }
}

void TubeList::Add(const engine::QueueList& page) {
  for (const engine::QueueView& queue : page.queues) {
    if (IsThere(queue)) {
      Add(queue.name);
    }
  }
}

std::string TubeList::Text(const Hub& hub) {
  hub.ForEachTube([this](const Tube& tube) { Add(tube.name); });
  YamlList list;
  list.Add(kDefaultTube);
  for (const std::string& name : names_) {
    list.Add(name);
  }
  return list.text();
}

}  // namespace delayd::beanstalk

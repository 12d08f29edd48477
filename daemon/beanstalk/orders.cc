// Translates commands of the protocol into engine commands.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/job.h"
#include "base/limits.h"
#include "daemon/beanstalk/session.h"
#include "protocol/beanstalk/reply_writer.h"

namespace delayd::beanstalk {
namespace {

// A waiting client is warned this long before its lease ends.
constexpr Millis kDeadlineMargin{1000};
constexpr Millis kReserveAskMax{limits::kLeaseWaitMsMax};

// The protocol allows up to 136 years in seconds; docs/protocol.md says what happens above the
// engine's limits.
Millis DelayOf(Millis asked) {
  return std::min(asked, Millis(limits::kDelayMsMax));
}

Millis LeaseOf(Millis ttr) {
  return std::min(ttr, Millis(limits::kLeaseMsMax));
}

JobSpec SpecOf(const std::string& tube, uint32_t priority, Millis delay, Millis ttr) {
  JobSpec spec;
  spec.queue = tube;
  spec.due = DueAfter{DelayOf(delay)};
  spec.priority = priority;
  spec.lease = LeaseOf(ttr);
  spec.max_attempts = 0;  // this protocol never buries on its own
  return spec;
}

// The engine's ids end at 2^53; a greater number names no job.
JobId IdOf(uint64_t id) {
  return JobId{std::min(id, limits::kJobIdMax + 1)};
}

}  // namespace

std::optional<engine::Command> BeanstalkSession::OrderOf(const Command& command,
                                                         const Now& now,
                                                         std::string* text) {
  switch (command.verb) {
    case Verb::kPut:
    case Verb::kPutMs:
    case Verb::kPutKey:
      BecomeProducer();
      return OrderPut(command);
    case Verb::kPutBatch:
      BecomeProducer();
      return OrderBatch(command, text);
    case Verb::kReserve:
    case Verb::kReserveWithTimeout:
    case Verb::kReserveBatch:
      BecomeWorker();
      waiting_ = Waiting{.tag = last_tag()};
      if (command.verb != Verb::kReserve) {
        waiting_->until = now.boot + std::chrono::seconds(command.timeout);
      }
      if (command.verb == Verb::kReserveBatch) {
        waiting_->count = static_cast<uint32_t>(command.count);
      }
      return OrderReserve(now);
    case Verb::kReserveJob:  // counts as a worker only once it gets the job
      waiting_ = Waiting{.tag = last_tag()};
      static_cast<void>(reservations_.SoonestEnd(now.boot));  // forgets those that have ended
      return engine::LeaseJob{.job = IdOf(command.id)};
    case Verb::kDelete:
      return OrderDelete(IdOf(command.id), now);
    case Verb::kDeleteBatch:
      return OrderDeleteBatch(command, now, text);
    case Verb::kDeleteKey:
      return engine::Cancel{.job = KeyRef{.queue = used_->name, .key = std::string(command.name)},
                            .if_tag = {},
                            .brief = true};
    case Verb::kRelease:
    case Verb::kBury:
    case Verb::kTouch:
      return OrderHeld(command, now, text);
    case Verb::kKick:
      if (command.count == 0) {
        AppendLine("KICKED", uint64_t{0}, text);
        return std::nullopt;
      }
      return engine::KickQueue{
          .queue = used_->name,
          .count = static_cast<uint32_t>(std::min<uint64_t>(command.count, limits::kKickCountMax))};
    case Verb::kKickJob:
      return engine::Kick{IdOf(command.id)};
    case Verb::kPauseTube:
      return OrderPause(command, text);
    case Verb::kUse:
    case Verb::kWatch:
    case Verb::kIgnore:
    case Verb::kListTubeUsed:
    case Verb::kListTubesWatched:
      DoLocally(command, text);
      return std::nullopt;
    default:
      return OrderLook(command);
  }
}

engine::Command BeanstalkSession::OrderPut(const Command& command) {
  engine::Enqueue enqueue{.user = quota_.user, .user_jobs_max = quota_.jobs_max, .brief = true};
  JobSpec& spec =
      enqueue.jobs.emplace_back(SpecOf(used_->name, command.priority, command.delay, command.ttr));
  spec.payload = command.body;
  spec.key = command.name;  // set for put-key only
  return enqueue;
}

std::optional<engine::Command> BeanstalkSession::OrderBatch(const Command& command,
                                                            std::string* text) {
  std::vector<BatchJob> jobs;
  const Refusal refusal =
      ParseBatch(command.body, command.count, hub_->options().job_bytes_max, &jobs);
  if (refusal != Refusal::kNone) {
    text->append(ReplyTo(refusal));
    return std::nullopt;
  }
  engine::Enqueue enqueue{.user = quota_.user, .user_jobs_max = quota_.jobs_max, .brief = true};
  enqueue.jobs.reserve(jobs.size());
  for (const BatchJob& job : jobs) {
    JobSpec& spec =
        enqueue.jobs.emplace_back(SpecOf(used_->name, job.priority, job.delay, job.ttr));
    spec.payload = job.body;
    spec.key = job.key;
  }
  return enqueue;
}

// Waits for a job until the client's own timeout, until the client must be warned of a deadline, or
// for as long as one request may wait, whichever comes first.
engine::Command BeanstalkSession::OrderReserve(const Now& now) {
  Waiting& waiting = *waiting_;
  Millis wait = kReserveAskMax;
  waiting.on_empty = OnEmpty::kAskAgain;
  const auto bound = [&](BootTime at, OnEmpty on_empty) {
    const Millis left = std::max(at - now.boot, Millis(0));
    if (left <= wait) {
      wait = left;
      waiting.on_empty = on_empty;
    }
  };
  if (waiting.until) {
    bound(*waiting.until, OnEmpty::kTimedOut);
  }
  if (const std::optional<BootTime> end = reservations_.SoonestEnd(now.boot)) {
    bound(*end - kDeadlineMargin, OnEmpty::kDeadlineSoon);
  }
  // This reserve is asked again after a stop has begun, and the stop ended only earlier waits.
  if (ended()) {
    bound(now.boot, OnEmpty::kTimedOut);
  }
  engine::Lease lease;
  lease.count = waiting.count;
  lease.wait = wait;
  lease.queues.reserve(watched_.size());
  for (Tube* const tube : watched_) {
    lease.queues.push_back(tube->name);
    tube->waiting += waiting.is_counted ? 0 : 1;
  }
  hub_->waiting += waiting.is_counted ? 0 : 1;
  waiting.is_counted = true;
  return lease;
}

engine::Command BeanstalkSession::OrderDelete(JobId id, const Now& now) {
  const std::optional<Reservations::Taken> taken = reservations_.Take(id, now.boot);
  if (taken && !taken->is_over) {
    return engine::Ack{.token = taken->token, .brief = true};
  }
  if (!taken) {
    return engine::Cancel{.job = id, .if_tag = {}, .brief = true};
  }
  auto deletion = std::make_unique<Deletion>();
  deletion->Add(id, taken);
  return Begin(std::move(deletion));
}

std::optional<engine::Command> BeanstalkSession::OrderDeleteBatch(const Command& command,
                                                                  const Now& now,
                                                                  std::string* text) {
  std::vector<uint64_t> ids;
  if (const Refusal refusal = ParseIds(command.body, command.count, &ids);
      refusal != Refusal::kNone) {
    text->append(ReplyTo(refusal));
    return std::nullopt;
  }
  auto deletion = std::make_unique<Deletion>();
  for (const uint64_t number : ids) {
    const JobId id = IdOf(number);
    deletion->Add(id, reservations_.Take(id, now.boot));
  }
  return Begin(std::move(deletion));
}

engine::Command BeanstalkSession::Begin(std::unique_ptr<Deletion> deletion) {
  std::vector<engine::Command> commands = deletion->TakeCommands();
  slots_.back().deletion = std::move(deletion);
  if (commands.size() > 1) {
    also_ = SessionRequest{last_tag(), std::move(commands.back())};
  }
  return std::move(commands.front());
}

// Commands that only the connection which reserved the job may give.
std::optional<engine::Command> BeanstalkSession::OrderHeld(const Command& command,
                                                           const Now& now,
                                                           std::string* text) {
  const JobId id = IdOf(command.id);
  std::optional<LeaseToken> token;
  if (command.verb == Verb::kTouch) {
    token = reservations_.Touch(id, now.boot);
  } else if (const auto taken = reservations_.Take(id, now.boot); taken && !taken->is_over) {
    token = taken->token;
  }
  if (!token) {
    text->append(reply::kNotFound);
    return std::nullopt;
  }
  switch (command.verb) {
    case Verb::kRelease:
      return engine::Nack{
          .token = *token, .delay = DelayOf(command.delay), .priority = command.priority};
    case Verb::kBury:
      return engine::Bury{.token = *token, .priority = command.priority};
    default:
      return engine::Extend{.token = *token};
  }
}

std::optional<engine::Command> BeanstalkSession::OrderPause(const Command& command,
                                                            std::string* text) {
  if (!IsQueueName(command.name)) {
    text->append(ReplyTo(Refusal::kBadFormat));
    return std::nullopt;
  }
  std::string queue(command.name);
  const bool is_known = hub_->Find(command.name) != nullptr || command.name == kDefaultTube;
  if (command.delay.count() == 0) {
    return engine::Resume{.queue = std::move(queue), .is_known = is_known};
  }
  return engine::Pause{
      .queue = std::move(queue), .duration = DelayOf(command.delay), .create = is_known};
}

std::optional<engine::Command> BeanstalkSession::OrderLook(const Command& command) {
  const auto peek = [this](engine::Peek::Which which) {
    return engine::Peek{.queue = used_->name, .which = which};
  };
  switch (command.verb) {
    case Verb::kPeek:
    case Verb::kStatsJob:
      return engine::Show{IdOf(command.id)};
    case Verb::kPeekReady:
      return peek(engine::Peek::Which::kReady);
    case Verb::kPeekDelayed:
      return peek(engine::Peek::Which::kDelayed);
    case Verb::kPeekBuried:
      return peek(engine::Peek::Which::kBuried);
    case Verb::kStats:
      return engine::GetStats{};
    case Verb::kStatsTube:
      slots_.back().text = command.name;
      return engine::ListQueues{.queue = std::string(command.name)};
    case Verb::kListTubes:
      tubes_ = std::make_unique<TubeList>();
      return engine::ListQueues{};
    default:
      return engine::ListQueues{};
  }
}

void BeanstalkSession::DoLocally(const Command& command, std::string* text) {
  // Searched by pointer: there may be very many tubes, and comparing names would access each one.
  // A tube that the hub does not know is not watched.
  const Tube* const known = hub_->Find(command.name);
  const auto watched = known == nullptr ? watched_.end() : std::ranges::find(watched_, known);
  switch (command.verb) {
    case Verb::kUse: {
      Tube* const before = used_;
      used_ = hub_->Use(command.name);
      hub_->Leave(before);
      AppendLine("USING", used_->name, text);
      break;
    }
    case Verb::kListTubeUsed:
      AppendLine("USING", used_->name, text);
      break;
    case Verb::kWatch:
      if (watched == watched_.end() && watched_.size() == kWatchedMax) {
        text->append(reply::kOutOfMemory);
        break;
      }
      if (watched == watched_.end()) {
        Watch(command.name);
      }
      AppendLine("WATCHING", watched_.size(), text);
      break;
    case Verb::kIgnore:
      if (watched != watched_.end() && watched_.size() == 1) {
        text->append(reply::kNotIgnored);
        break;
      }
      if (watched != watched_.end()) {
        Tube* const tube = *watched;
        // The last tube takes its place, as in beanstalkd, so that lists have the same order.
        *watched = watched_.back();
        watched_.pop_back();
        Ignore(tube);
      }
      AppendLine("WATCHING", watched_.size(), text);
      break;
    default: {
      YamlList list;
      for (const Tube* const tube : watched_) {
        list.Add(tube->name);
      }
      AppendOk(list.text(), text);
    }
  }
}

// Workers that watch the same tube share its name; the first of them is charged for it.
void BeanstalkSession::Watch(std::string_view name) {
  Tube* const tube = hub_->Watch(name);
  watched_.push_back(tube);
  if (tube->payer == nullptr) {
    tube->payer = this;
    ++names_;
  }
}

void BeanstalkSession::Ignore(Tube* tube) {
  if (tube->payer == this) {
    tube->payer = nullptr;
    --names_;
  }
  hub_->Ignore(tube);
}

void BeanstalkSession::BecomeProducer() {
  hub_->producers += is_producer_ ? 0 : 1;
  is_producer_ = true;
}

void BeanstalkSession::BecomeWorker() {
  hub_->workers += is_worker_ ? 0 : 1;
  is_worker_ = true;
}

}  // namespace delayd::beanstalk

#include "tests/simulation/workload.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"

namespace delayd::simulation {

using engine::Command;

const std::vector<std::string>& Workload::queues() {
  while (queues_.size() < habits_.queues) {
    queues_.push_back("q" + std::to_string(queues_.size()));
  }
  return queues_;
}

std::string Workload::Queue() {
  return queues()[choices_.Below(queues().size())];
}

std::string Workload::Key() {
  return "key:" + std::to_string(choices_.Below(habits_.keys));
}

Millis Workload::Delay() {
  if (habits_.extremes && choices_.OneIn(40)) {
    return Millis(limits::kDelayMsMax);
  }
  switch (choices_.Below(4)) {
    case 0:
      return Millis(0);
    case 1:
      return Millis(choices_.Below(2000));
    default:
      return Millis(choices_.Magnitude(habits_.delay_bits));
  }
}

Millis Workload::LeaseLength(unsigned bits) {
  if (habits_.extremes && choices_.OneIn(8)) {
    return Millis(choices_.OneIn(2) ? 1 : limits::kLeaseMsMax);
  }
  return Millis(choices_.Magnitude(bits));
}

// Seldom longer than what is kept of it, and then of characters of two bytes.
std::string Workload::Error() {
  std::string error = "exit status " + std::to_string(choices_.Below(100));
  if (choices_.OneIn(12)) {
    for (uint64_t more = choices_.Below(700); more > 0; --more) {
      error += "\xc3\xa9";
    }
  }
  return error;
}

uint32_t Workload::Priority() {
  static constexpr uint32_t kRare[] = {limits::kPriorityDefault - 1,
                                       limits::kPriorityDefault,
                                       limits::kPriorityDefault + 1,
                                       std::numeric_limits<uint32_t>::max()};
  return choices_.OneIn(8) ? kRare[choices_.Below(4)] : static_cast<uint32_t>(choices_.Below(4));
}

std::string Workload::Client() {
  return choices_.OneIn(3) ? std::string() : "worker-" + std::to_string(choices_.Below(4));
}

std::string Workload::Prefix() {
  static const std::string kPrefixes[] = {"key:", "key:1", "key:2", "nobody"};
  return kPrefixes[choices_.Below(4)];
}

DueSpec Workload::Due(const Now& now) {
  if (choices_.Percent(60)) {
    return DueAfter{Delay()};
  }
  // On the wall clock: mostly ahead, sometimes long past; often on the full second, so that many
  // are due together.
  const int64_t distance = choices_.OneIn(4) ? -Delay().count() : Delay().count();
  int64_t at = std::clamp<int64_t>(ToMillis(now.wall) + distance, 0, limits::kWallMsMax);
  if (choices_.OneIn(3)) {
    at -= at % 1000;
  }
  return DueAt{WallFromMillis(at)};
}

// What an import says of the life that a job had elsewhere.
std::shared_ptr<JobPast> Workload::Past(const Now& now) {
  const auto count = [this] { return static_cast<uint32_t>(choices_.Below(4)); };
  auto past = std::make_shared<JobPast>();
  past->timeouts = count();
  past->releases = count();
  past->buries = count();
  past->kicks = count();
  past->attempts = choices_.OneIn(8) ? limits::kPastFigureMax : count();
  if (choices_.OneIn(2)) {
    past->last_error = "exit status " + std::to_string(count());
  }
  if (choices_.OneIn(2)) {
    past->created = now.wall + (choices_.OneIn(8) ? Delay() : -Delay());
  }
  past->fingerprint = choices_.OneIn(2) ? choices_.Below(4) : 0;
  for (uint64_t events = choices_.Below(limits::kJobEventsMax + 1); events > 0; --events) {
    past->history.push_back({.kind = static_cast<JobEvent::Kind>(1 + choices_.Below(6)),
                             .at = now.wall - Delay(),
                             .who = Client(),
                             .what = past->last_error});
  }
  return past;
}

JobSpec Workload::Spec(const Now& now) {
  JobSpec spec;
  spec.queue = Queue();
  spec.due = Due(now);
  spec.payload = "p" + std::to_string(choices_.Below(1'000'000));
  if (choices_.OneIn(20)) {
    spec.payload.append(choices_.Below(3000), 'x');  // inline and big ones
  }
  if (choices_.OneIn(3)) {
    spec.priority = Priority();
  }
  if (choices_.OneIn(3)) {
    spec.lease = LeaseLength(26);
  }
  if (choices_.OneIn(3)) {
    spec.max_attempts = habits_.extremes && choices_.OneIn(8)
                            ? std::numeric_limits<uint32_t>::max()
                            : static_cast<uint32_t>(choices_.Below(4));
  }
  if (choices_.OneIn(6)) {
    spec.expires_after =
        Millis(habits_.extremes && choices_.OneIn(4) ? (choices_.OneIn(2) ? 1 : limits::kDelayMsMax)
                                                     : choices_.Magnitude(30));
  }
  if (choices_.OneIn(3)) {
    spec.key = Key();
  }
  spec.buried = choices_.OneIn(25);
  if (choices_.OneIn(12)) {
    spec.touch_delay = Delay();
  }
  if (choices_.OneIn(12)) {
    spec.past = Past(now);
  }
  return spec;
}

JobRef Workload::Job() {
  if (ids_.empty() || choices_.OneIn(4)) {
    return KeyRef{.queue = Queue(), .key = Key()};
  }
  if (choices_.OneIn(20)) {
    return JobId{choices_.Below(5'000'000)};
  }
  // Mostly a young one; an old one is most likely finished.
  const size_t reach = choices_.OneIn(3) ? ids_.size() : std::min<size_t>(ids_.size(), 60);
  return ids_[ids_.size() - 1 - choices_.Below(reach)];
}

// As it was last told of the job, if it was; seldom another.
std::vector<std::string> Workload::Tags(const JobRef& job) {
  std::vector<std::string> tags;
  if (!choices_.OneIn(3)) {
    return tags;
  }
  const auto* id = std::get_if<JobId>(&job);
  const auto told = id == nullptr ? tags_.end() : tags_.find(*id);
  if (told == tags_.end() || choices_.OneIn(5)) {
    tags.emplace_back("0123456789abcdef");
  }
  if (told != tags_.end() && (tags.empty() || choices_.OneIn(3))) {
    tags.push_back(told->second);
  }
  return tags;
}

LeaseToken Workload::Token() {
  if (tokens_.empty()) {
    return {.job = JobId{choices_.Below(100)}, .epoch = choices_.Below(4), .sequence = 1};
  }
  const size_t reach = choices_.OneIn(5) ? tokens_.size() : std::min<size_t>(tokens_.size(), 8);
  LeaseToken token = tokens_[tokens_.size() - 1 - choices_.Below(reach)];
  if (choices_.OneIn(30)) {
    ++token.sequence;
  }
  return token;
}

Command Workload::NextAck() {
  if (!choices_.OneIn(4)) {
    return engine::Ack{.token = Token(), .brief = choices_.OneIn(2)};
  }
  engine::AckMany command;
  for (uint64_t count = 1 + choices_.Below(5); count > 0; --count) {
    command.tokens.push_back(Token());
  }
  if (choices_.OneIn(5)) {
    command.tokens.push_back(command.tokens.front());  // is over by then
  }
  return command;
}

Command Workload::NextCancel() {
  if (!choices_.OneIn(4)) {
    engine::Cancel one{.job = Job(), .if_tag = {}, .brief = choices_.OneIn(2)};
    one.if_tag = Tags(one.job);
    return one;
  }
  engine::CancelIds command;
  for (uint64_t count = 1 + choices_.Below(5); count > 0; --count) {
    const JobRef job = Job();
    const auto* id = std::get_if<JobId>(&job);
    command.jobs.push_back(id != nullptr ? *id : JobId{choices_.Below(100)});
  }
  if (choices_.OneIn(5)) {
    command.jobs.push_back(command.jobs.front());  // is gone by then
  }
  return command;
}

Command Workload::NextEnqueue(const Now& now) {
  engine::Enqueue command;
  command.brief = choices_.OneIn(3);
  if (choices_.OneIn(2)) {
    command.user = choices_.OneIn(2) ? "uid:1000" : "token:shop";
    const bool narrow = habits_.narrow_quotas;
    command.user_jobs_max =
        choices_.OneIn(narrow ? 2 : 4) ? 1 + choices_.Below(narrow ? 5 : 20) : 0;
  }
  size_t count = choices_.OneIn(4) ? 1 + choices_.Below(6) : 1;
  if (habits_.big_batches && choices_.OneIn(40)) {
    count = limits::kEnqueueBatchJobsMax - choices_.Below(3);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!keyed_.empty() && choices_.OneIn(4)) {
      // A retry of the same request, or the same key with something else.
      JobSpec again =
          keyed_[keyed_.size() - 1 - choices_.Below(std::min<size_t>(keyed_.size(), 12))];
      if (choices_.OneIn(4)) {
        again.payload += "'";
      }
      if (choices_.OneIn(3)) {
        again.on_conflict = choices_.OneIn(3) ? OnConflict::kKeep : OnConflict::kReplace;
      }
      command.jobs.push_back(std::move(again));
      continue;
    }
    command.jobs.push_back(Spec(now));
    if (!command.jobs.back().key.empty() && choices_.OneIn(6)) {
      command.jobs.back().on_conflict =
          choices_.OneIn(2) ? OnConflict::kKeep : OnConflict::kReplace;
    }
    if (!command.jobs.back().key.empty()) {
      keyed_.push_back(command.jobs.back());
    }
  }
  return command;
}

Command Workload::NextLease() {
  engine::Lease command;
  command.queues.push_back(Queue());
  command.count = choices_.OneIn(3) ? static_cast<uint32_t>(1 + choices_.Below(20)) : 1;
  if (habits_.extremes && choices_.OneIn(20)) {
    command.count = limits::kLeaseCountMax;
  }
  if (choices_.OneIn(3)) {
    command.lease = LeaseLength(26);
  }
  if (choices_.OneIn(3)) {
    command.wait = Millis(habits_.extremes && choices_.OneIn(8) ? limits::kLeaseWaitMsMax
                                                                : choices_.Magnitude(21));
  }
  command.client = Client();
  if ((command.wait.count() == 0 || habits_.shared_waits) && choices_.OneIn(3)) {
    command.queues = queues();
    if (choices_.OneIn(4)) {
      command.queues.push_back(Queue());  // named twice
    }
  }
  if (choices_.OneIn(8)) {
    // One that no job is ever put into, and that only who waits for it knows; before or behind.
    const size_t place = choices_.Below(command.queues.size() + 1);
    command.queues.insert(command.queues.begin() + static_cast<std::ptrdiff_t>(place),
                          "nobody" + std::to_string(choices_.Below(3)));
  }
  return command;
}

Command Workload::NextList(const Now& now) {
  if (!next_pages_.empty() && choices_.OneIn(2)) {
    engine::List next = std::move(next_pages_.back());
    next_pages_.pop_back();
    return next;
  }
  engine::List command;
  if (!choices_.OneIn(3)) {
    command.queue = Queue();
  }
  if (choices_.OneIn(2)) {
    command.state = static_cast<JobState>(1 + choices_.Below(5));
  }
  if (choices_.OneIn(4)) {
    command.due_before = now.wall + Delay();
  }
  if (choices_.OneIn(4)) {
    command.due_after = now.wall - Delay();
  }
  if (choices_.OneIn(6)) {
    command.key_prefix = Prefix();
  }
  if (choices_.OneIn(2)) {
    command.limit = static_cast<uint32_t>(1 + choices_.Below(choices_.OneIn(20) ? 1200 : 10));
  }
  command.with_payload = choices_.OneIn(4);
  last_list_ = command;
  return command;
}

Command Workload::NextQueues() {
  engine::ListQueues command;
  if (choices_.OneIn(3)) {
    command.queue = Queue();
    return command;
  }
  command.limit = static_cast<uint32_t>(choices_.Below(4));
  if (!next_queues_.empty() && choices_.OneIn(2)) {
    // Whatever happened since: a queue's number stays while it is there.
    command.cursor = next_queues_[choices_.Below(next_queues_.size())];
  }
  return command;
}

Command Workload::NextMany(const Now& now) {
  if (!next_steps_.empty() && choices_.OneIn(2)) {
    last_many_ = std::move(next_steps_.back());
    next_steps_.pop_back();
    return last_many_;
  }
  engine::ChangeMany command;
  if (choices_.OneIn(3)) {
    command.action = engine::ChangeMany::Action::kKick;
  } else if (choices_.OneIn(2)) {
    command.action = engine::ChangeMany::Action::kReschedule;
    if (!choices_.OneIn(4)) {
      command.due = Due(now);
    }
    if (choices_.OneIn(3)) {
      command.priority = Priority();
    }
  }
  engine::JobFilter& filter = command.filter;
  if (!choices_.OneIn(4)) {
    filter.queue = Queue();
  }
  if (choices_.OneIn(2)) {
    filter.state = static_cast<JobState>(1 + choices_.Below(5));
  }
  if (choices_.OneIn(3)) {
    filter.due_before = now.wall + Delay();
  }
  if (choices_.OneIn(3)) {
    filter.due_after = now.wall - Delay();
  }
  if (choices_.OneIn(3)) {
    filter.key_prefix = Prefix();
  }
  command.dry_run = choices_.OneIn(3);
  command.limit = static_cast<uint32_t>(choices_.OneIn(8) ? 0 : 1 + choices_.Below(8));
  last_many_ = command;
  return command;
}

Command Workload::NextForecast(const Now& now) {
  engine::Forecast command;
  if (choices_.OneIn(2)) {
    command.queue = Queue();
  }
  command.from = now.wall;
  if (choices_.OneIn(2)) {
    command.from += choices_.OneIn(2) ? Delay() : -Delay();
  }
  command.step = Millis(1 + choices_.Magnitude(habits_.delay_bits - 3));
  command.to =
      command.from + Millis(1 + choices_.Below(10 * static_cast<uint64_t>(command.step.count())));
  return command;
}

Command Workload::Next(const Now& now, size_t live_jobs) {
  const uint64_t kind = choices_.Below(115);
  if (kind >= 100) {
    return NextOfTheRest();
  }
  if (kind < 30) {
    return live_jobs < habits_.jobs_max || choices_.OneIn(10) ? NextEnqueue(now) : NextLease();
  }
  if (kind < 50) {
    return NextLease();
  }
  if (kind < 62) {
    return NextAck();
  }
  if (kind < 68) {
    return engine::Nack{.token = Token(),
                        .delay = choices_.OneIn(2) ? std::optional(Delay()) : std::nullopt,
                        .error = Error(),
                        .priority = choices_.OneIn(4) ? std::optional(Priority()) : std::nullopt,
                        .counts_as_attempt = !choices_.OneIn(4)};
  }
  if (kind < 70) {
    return engine::Bury{.token = Token(),
                        .error = Error(),
                        .priority = choices_.OneIn(4) ? std::optional(Priority()) : std::nullopt};
  }
  if (kind < 74) {
    return engine::Extend{
        .token = Token(),
        .lease = choices_.OneIn(2) ? std::optional(LeaseLength(26)) : std::nullopt};
  }
  if (kind < 80) {
    return NextCancel();
  }
  if (kind < 86) {
    engine::Reschedule command{.job = Job()};
    if (!choices_.OneIn(3)) {
      command.due = Due(now);
    }
    if (!command.due || choices_.OneIn(2)) {
      command.priority = Priority();
    }
    command.if_tag = Tags(command.job);
    return command;
  }
  if (kind < 88) {
    return engine::Show{Job()};
  }
  if (kind < 89) {
    return NextMany(now);
  }
  if (kind < 90) {
    return NextForecast(now);
  }
  if (kind < 94) {
    return NextList(now);
  }
  if (kind < 96) {
    return NextQueues();
  }
  if (kind < 97) {
    return engine::GetStats{};
  }
  if (!waiting_.empty() && !choices_.OneIn(4)) {
    const engine::RequestId waiting = waiting_[choices_.Below(waiting_.size())];
    return choices_.OneIn(2) ? Command(engine::Abandon{waiting})
                             : Command(engine::EndWait{waiting});
  }
  return NextMistake(now);
}

Command Workload::NextOfTheRest() {
  switch (choices_.Below(10)) {
    case 0:
      return engine::LeaseJob{
          .job = Job(),
          .lease = choices_.OneIn(2) ? std::optional(LeaseLength(20)) : std::nullopt,
          .client = Client()};
    case 1:
      return engine::GiveBack{Token()};
    case 2:
      return engine::Kick{Job()};
    case 3:
      return engine::KickQueue{.queue = Queue(),
                               .count = choices_.OneIn(6)
                                            ? std::numeric_limits<uint32_t>::max()
                                            : static_cast<uint32_t>(choices_.Below(4))};
    case 4:
      return engine::Pause{.queue = Queue(),
                           .duration = choices_.OneIn(4)
                                           ? std::nullopt
                                           : std::optional(habits_.extremes && choices_.OneIn(8)
                                                               ? Millis(limits::kDelayMsMax)
                                                               : Millis(choices_.Magnitude(18))),
                           .create = choices_.OneIn(8)};
    case 5:
      return engine::Resume{.queue = Queue()};
    case 6: {
      engine::Touch touch{.job = Job()};
      touch.if_tag = Tags(touch.job);
      return touch;
    }
    case 7:
      return Settings();
    case 8:
      return engine::Drain{.on = choices_.OneIn(8)};
    default:
      return engine::Peek{.queue = Queue(),
                          .which = static_cast<engine::Peek::Which>(choices_.Below(3))};
  }
}

void Workload::Told(const engine::Reply& reply) {
  std::erase(waiting_, reply.request);
  if (const auto* enqueued = std::get_if<engine::Enqueued>(&reply.body)) {
    for (const auto& item : enqueued->items) {
      ids_.push_back(item.job.id);
      tags_[item.job.id] = TagOf(item.job);
    }
  } else if (const auto* one = std::get_if<Indirect<JobView>>(&reply.body)) {
    tags_[(*one)->id] = TagOf(**one);
  } else if (const auto* ids = std::get_if<engine::EnqueuedIds>(&reply.body)) {
    for (const auto& item : ids->items) {
      ids_.push_back(item.id);
    }
  } else if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
    for (const JobView& job : leased->jobs) {
      tokens_.push_back(*job.lease_token);
    }
  } else if (const auto* list = std::get_if<engine::JobList>(&reply.body)) {
    for (const JobView& job : list->jobs) {
      tags_[job.id] = TagOf(job);
    }
    if (!list->next_cursor.empty()) {
      last_list_.cursor = list->next_cursor;
      next_pages_.push_back(last_list_);
    }
  } else if (const auto* queues = std::get_if<engine::QueueList>(&reply.body)) {
    if (!queues->next_cursor.empty()) {
      next_queues_.push_back(queues->next_cursor);
    }
  } else if (const auto* many = std::get_if<engine::ChangedMany>(&reply.body)) {
    if (!many->next_cursor.empty()) {
      last_many_.cursor = many->next_cursor;
      next_steps_.push_back(last_many_);
    }
  }
}

}  // namespace delayd::simulation

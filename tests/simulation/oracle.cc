#include "tests/simulation/oracle.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "daemon/engine/other_life.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/simulation/compare.h"

namespace delayd::simulation {
namespace {

bool IsDeletedBehind(const storage::Batch& batch, size_t index) {
  const storage::Batch::Op row = batch.op(index);
  for (size_t i = index + 1; i < batch.size(); ++i) {
    const storage::Batch::Op op = batch.op(i);
    if (op.is_delete && op.table == row.table && op.key == row.key) {
      return true;
    }
  }
  return false;
}

Micros WallAhead(const Now& now) {
  return now.wall.time_since_epoch() + now.wall_rest - now.exact_boot().time_since_epoch();
}

}  // namespace

using engine::RequestId;
using storage::Table;

void Oracle::Fail(std::string what) {
  if (violation_.empty()) {
    violation_ = std::move(what);
  }
}

void Oracle::Relax(const engine::Reply& actual, engine::Reply* expected) const {
  if (!model_.Follows() || expected->body.index() != actual.body.index()) {
    return;
  }
  if (auto* stats = std::get_if<Indirect<engine::StatsView>>(&expected->body)) {
    Model::FollowCounts(*std::get<Indirect<engine::StatsView>>(actual.body), &**stats);
  } else if (auto* list = std::get_if<engine::QueueList>(&expected->body)) {
    for (engine::QueueView& queue : list->queues) {
      for (const engine::QueueView& view : std::get<engine::QueueList>(actual.body).queues) {
        if (view.name == queue.name) {
          Model::FollowCounts(view, &queue);
        }
      }
    }
  }
}

void Oracle::TakeAnswers() {
  for (Expected& answer : model_.TakeAnswers()) {
    const RequestId request = answer.reply.request;
    expected_.insert_or_assign(request, std::move(answer));
  }
}

// Also when it is put back before the next look at what is to be forgotten.
void Oracle::SeeClocks(const Now& now) {
  wall_was_set_ = wall_was_set_ || WallAhead(now) != wall_ahead_;
}

void Oracle::Executed(RequestId request, const engine::Command& command, const Now& now) {
  SeeClocks(now);
  names_[request] = engine::CommandName(command);
  if (const auto* list = std::get_if<engine::List>(&command)) {
    model_.Execute(request, command, now);
    lists_.emplace(request, ListCheck{*list, durable_, model_});
    return;
  }
  if (const auto* queues = std::get_if<engine::ListQueues>(&command)) {
    QueuePage& page = queue_pages_[request];
    page.command = *queues;
    for (const auto& [name, queue] : model_.queues()) {
      if (queue.id != QueueId{}) {
        page.ids.emplace(name, queue.id);
      }
    }
  }
  if (const auto* abandon = std::get_if<engine::Abandon>(&command)) {
    names_.erase(request);
    const auto chosen = expected_.find(abandon->waiting);
    if (chosen == expected_.end()) {
      names_.erase(abandon->waiting);
    } else if (auto* leased = std::get_if<engine::Leased>(&chosen->second.reply.body)) {
      model_.TakeBack(std::exchange(*leased, {}), now);
    }
  }
  if (std::holds_alternative<engine::EndWait>(command)) {
    names_.erase(request);  // the wait is answered, not this
  }
  if (std::holds_alternative<engine::ChangeMany>(command)) {
    for (const auto& [id, job] : durable_.jobs()) {
      model_.durable_rows.push_back({job.place, id, job.state == JobState::kDead, job.spec->queue});
    }
    std::ranges::sort(model_.durable_rows, {}, [](const Model::Row& row) {
      return std::pair(row.place, row.id);
    });
  }
  model_.Execute(request, command, now);
  model_.durable_rows.clear();
  TakeAnswers();
}

void Oracle::Advanced(const Now& now) {
  SeeClocks(now);
  model_.Advance(now);
  TakeAnswers();
}

void Oracle::CheckMark(WallTime mark) {
  if (mark < model_.mark) {
    Fail("P10: the low-water mark went back to " + std::to_string(ToMillis(mark)));
  }
  for (const auto& [id, job] : model_.jobs()) {
    if (job.state != JobState::kDead && job.place < mark) {
      return Fail("P10: the low-water mark is " + std::to_string(ToMillis(mark)) + ", above job " +
                  std::to_string(ToInt(id)) + " at " + std::to_string(ToMillis(job.place)) +
                  ": a restart would not see it");
    }
  }
  model_.mark = mark;
}

// What the engine decides for itself and writes down: its marks, and what retention trimmed.
void Oracle::Learn(const storage::Batch::Op& op, const Now& now) {
  if (op.table == Table::kMeta && op.key == storage::kLowWaterMarkKey) {
    CheckMark(WallFromMillis(static_cast<int64_t>(*storage::DecodeNumber(op.key, op.value))));
  } else if (op.table == Table::kMeta && op.key == storage::kDoneLowWaterMarkKey) {
    model_.done_mark =
        WallFromMillis(static_cast<int64_t>(*storage::DecodeNumber(op.key, op.value)));
  } else if (op.table == Table::kMeta && op.key == storage::kClockKey) {
    model_.noted_wall = storage::DecodeClockRecord(op.key, op.value)->wall;
  } else if (op.table == Table::kMeta && op.key == storage::kBatchNumberKey) {
    if (*storage::DecodeNumber(op.key, op.value) != model_.open_batch) {
      Fail("a batch carries another number than its place in the order");
    }
  } else if (op.table == Table::kQueues && !op.is_delete) {
    const QueueId id = storage::DecodeQueueRecord(op.key, op.value)->id;
    model_.Named(std::string(op.key), id);
    for (auto& [request, page] : queue_pages_) {
      page.ids.emplace(op.key, id);
    }
  } else if (op.table == Table::kQueues) {
    if (const std::string wrong = model_.Forgotten(std::string(op.key), now); !wrong.empty()) {
      Fail("queue " + std::string(op.key) + " was forgotten: " + wrong);
    }
  } else if (op.table == Table::kDead && !op.is_delete) {
    model_.FollowDeath(storage::ParseDeadKey(op.key)->id);
  } else if (op.table == Table::kDone && op.is_delete) {
    const auto parts = *storage::ParseDoneKey(op.key);
    const auto done = model_.done().find({parts.key_due, parts.id});
    // The longest of all queues as it is now: what it was when the job finished does not count.
    if (done != model_.done().end() && parts.key_due + model_.LongestRetention() > now.wall) {
      Fail("P7: job " + std::to_string(ToInt(parts.id)) +
           " was forgotten before its retention was over");
    }
    model_.Trimmed({parts.key_due, parts.id});
  }
}

void Oracle::Sealed(const engine::SealedBatch& sealed, const Now& now) {
  if (sealed.sequence != model_.open_batch) {
    return Fail("batch " + std::to_string(model_.open_batch) + " is numbered " +
                std::to_string(sealed.sequence));
  }
  for (size_t i = 0; i < sealed.batch->size(); ++i) {
    const storage::Batch::Op op = sealed.batch->op(i);
    // A job that was buried and then kicked is not dead; the model has seen both.
    if (op.table != Table::kDead || !IsDeletedBehind(*sealed.batch, i)) {
      Learn(op, now);
    }
  }
  underway_.emplace_back(sealed.sequence, model_);
  ++model_.open_batch;
}

void Oracle::Committed(uint64_t sequence) {
  DELAYD_CHECK(!underway_.empty());
  DELAYD_CHECK(underway_.front().first == sequence);
  durable_ = std::move(underway_.front().second);
  underway_.pop_front();
  committed_ = sequence;
  model_.Committed(sequence);
}

void Oracle::Crashed(size_t kept) {
  for (size_t i = 0; i < kept; ++i) {
    Committed(underway_.front().first);
  }
  underway_.clear();
  expected_.clear();  // their outcome is unknown to the clients: it happened once or not at all
  names_.clear();
  lists_.clear();
  queue_pages_.clear();
  model_ = durable_;
}

void Oracle::Restarted(const engine::EngineOptions& options,
                       const storage::JobReader& store,
                       const Now& now) {
  options_ = options;
  wall_ahead_ = WallAhead(now);
  wall_was_set_ = false;
  std::string value;
  uint64_t next_id = 1;
  if (store.Get(Table::kMeta, storage::kIdHighWaterMarkKey, &value).ok()) {
    next_id = *storage::DecodeNumber(storage::kIdHighWaterMarkKey, value);
  }
  const auto& jobs = model_.jobs();
  if (!jobs.empty() && ToInt(jobs.rbegin()->first) >= next_id) {
    Fail("ids may be given twice: the stored mark is " + std::to_string(next_id) +
         " and there is job " + std::to_string(ToInt(jobs.rbegin()->first)));
  }
  if (store.Get(Table::kMeta, storage::kClockKey, &value).ok()) {
    const auto last = storage::DecodeClockRecord(storage::kClockKey, value);
    const bool same_boot = options.boot_id != 0 && last->boot_id == options.boot_id;
    next_id += engine::IdsSince(
        last->wall, same_boot ? now.wall : engine::ShownAtStart(now.wall, options.machine_wall));
  }
  model_.Restart(options, next_id, now);
  model_.open_batch = committed_ + 1;
}

void Oracle::Replied(const engine::Reply& reply) {
  const auto name = names_.find(reply.request);
  if (name == names_.end()) {
    return Fail("an answer nobody waits for, or a second one: " + Describe(reply));
  }
  const std::string request = name->second + " (request " + std::to_string(reply.request) + ")";
  names_.erase(name);
  if (const auto list = lists_.find(reply.request); list != lists_.end()) {
    const ListCheck check = std::move(list->second);
    lists_.erase(list);
    return CheckList(check, reply);
  }
  const auto found = expected_.find(reply.request);
  const auto* leased = std::get_if<engine::Leased>(&reply.body);
  if (found == expected_.end() && leased != nullptr && model_.IsOpenLease(reply.request)) {
    if (std::string wrong = model_.Follow(reply.request, *leased); !wrong.empty()) {
      Fail(request + ": " + wrong);
    }
    return;
  }
  if (found == expected_.end() && model_.IsOpenPeek(reply.request)) {
    if (std::string wrong = model_.FollowPeek(reply); !wrong.empty()) {
      Fail(request + ": " + wrong);
    }
    return;
  }
  if (found == expected_.end()) {
    return Fail(request + " was answered too early: " + ExplainHandOut(reply));
  }
  Expected expected = std::move(found->second);
  expected_.erase(found);
  if (const auto page = queue_pages_.extract(reply.request); !page.empty() && reply.status.ok()) {
    CutPage(page.mapped(), &std::get<engine::QueueList>(expected.reply.body));
  }
  if (auto* leases = std::get_if<engine::Leased>(&expected.reply.body); leases && leased) {
    model_.LearnLeases(*leased, leases);
  }
  Relax(reply, &expected.reply);
  if (std::string difference = Difference(expected.reply, reply); !difference.empty()) {
    return Fail(request + ": " + difference + ExplainHandOut(reply));
  }
  if (expected.batch > committed_) {
    return Fail("P1: " + request + " was answered before batch " + std::to_string(expected.batch) +
                " was durable; the last durable one is " + std::to_string(committed_));
  }
  if (reply.sequence > committed_ || reply.sequence < expected.batch) {
    Fail(request + ": the answer claims to rest on batch " + std::to_string(reply.sequence) +
         " and rests on " + std::to_string(expected.batch));
  }
}

// Which promise a hand-out breaks, for the message.
std::string Oracle::ExplainHandOut(const engine::Reply& reply) const {
  const auto* leased = std::get_if<engine::Leased>(&reply.body);
  if (leased == nullptr) {
    return {};
  }
  std::string out;
  for (const JobView& view : leased->jobs) {
    const auto found = model_.jobs().find(view.id);
    out += "; " + Describe(view);
    if (found == model_.jobs().end()) {
      out += " [the model knows no such job: P4 if it was cancelled, P5 if acked]";
    } else if (found->second.state == JobState::kScheduled) {
      out += " [the model has it scheduled: P2]";
    } else if (found->second.state == JobState::kDead) {
      out += " [the model has it dead]";
    }
  }
  return out;
}

void Oracle::CheckCounters(const engine::StatsView& stats) {
  engine::StatsView expected = model_.Stats();
  if (model_.Follows()) {
    Model::FollowCounts(stats, &expected);
  }
  if (std::string difference = Difference(expected, stats); !difference.empty()) {
    Fail(difference);
  }
  if (stats.commit_sequence != committed_) {
    Fail("counters: commit_sequence should be " + std::to_string(committed_));
  }
}

void Oracle::CheckNextEvent(const std::optional<Micros>& until, const Now& now) {
  const std::optional<Micros> needed = model_.UntilNextEvent(now);
  if (needed && (!until || *until > *needed)) {
    Fail("P3: something is due in " + std::to_string(needed->count()) +
         " us and the engine would sleep " +
         (until ? std::to_string(until->count()) : std::string("for ever")));
  }
  if (std::string wrong = model_.Settled(); !wrong.empty()) {
    Fail(wrong);
  }
}

void Oracle::CheckNextTrim(const std::optional<Micros>& until, const Now& now) {
  const std::optional<Millis> needed = model_.UntilTrim(now);
  if (!wall_was_set_ && needed && (!until || *until > *needed)) {
    Fail("a finished job is to be forgotten in " + std::to_string(needed->count()) +
         " ms and the engine would sleep " +
         (until ? std::to_string(until->count()) + " us" : std::string("for ever")));
  }
}

void Oracle::CheckFigures(const engine::EngineFigures& figures, size_t most) {
  std::map<std::string, uint64_t> users;
  for (const auto& [id, job] : model_.jobs()) {
    if (!job.user.empty()) {
      ++users[job.user];
    }
  }
  if (figures.users.size() != std::min(most, users.size())) {
    Fail("figures: " + std::to_string(figures.users.size()) + " users are named");
  }
  for (const auto& [user, jobs] : figures.users) {
    if (jobs == 0 || users[user] != jobs) {
      Fail("figures: user " + user + " should have " + std::to_string(users[user]) +
           " jobs and has " + std::to_string(jobs));
    }
    users.erase(user);
  }
  uint64_t others = 0;
  for (const auto& [user, jobs] : users) {
    others += jobs;
  }
  if (figures.other_users != others) {
    Fail("figures: the other users should have " + std::to_string(others) + " jobs and have " +
         std::to_string(figures.other_users));
  }
  engine::StatsView sum{.scheduled = figures.other.scheduled,
                        .ready = figures.other.ready,
                        .leased = figures.other.leased,
                        .dead = figures.other.dead};
  for (const engine::QueueView& queue : figures.queues) {
    sum.scheduled += queue.scheduled;
    sum.ready += queue.ready;
    sum.leased += queue.leased;
    sum.dead += queue.dead;
  }
  const engine::StatsView& all = figures.totals;
  if (figures.queues.size() != std::min<uint64_t>(most, all.queues) ||
      std::tie(sum.scheduled, sum.ready, sum.leased, sum.dead) !=
          std::tie(all.scheduled, all.ready, all.leased, all.dead)) {
    Fail("figures: the queues are not all there, or their sum is another");
  }
}

void Oracle::CheckNothingOwed() {
  if (!expected_.empty()) {
    const RequestId request = expected_.begin()->first;
    Fail("everything is durable and " + names_[request] + " (request " + std::to_string(request) +
         ") has no answer");
  }
  if (!lists_.empty()) {
    Fail("everything is durable and a list has no answer");
  }
}

}  // namespace delayd::simulation

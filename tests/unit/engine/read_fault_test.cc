// One life of an engine in which every read of the store goes wrong once: it fails, now or from now
// on, or it gives something damaged, or nothing where something should be. Whatever is answered
// then is true, or says what is wrong.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/limits.h"
#include "daemon/engine/engine.h"
#include "storage/keys.h"
#include "storage/memory_job_store.h"
#include "tests/unit/engine/engine_harness.h"
#include "tests/unit/engine/reads_through.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

enum class Fault : uint8_t {
  kNone,
  kFails,
  kGone,      // this read and all that follow fail
  kDamaged,   // of each value that this read gives, a bit is flipped
  kShortKey,  // a scan shows keys that lack their last byte
  kMissing,   // a row is not there
};

// The reads of one engine that can go wrong so, counted.
class FaultyReads final : public storage::JobReader {
 public:
  FaultyReads(const storage::JobReader* store, Fault fault, uint64_t at)
      : store_(store), fault_(fault), at_(at) {}

  Status Get(storage::Table table, std::string_view key, std::string* value) const override {
    const bool strikes =
        Strikes(fault_ != Fault::kShortKey && (fault_ != Fault::kMissing || HoldsOneJob(table)));
    if (strikes && Fails()) {
      return Broken();
    }
    if (strikes && fault_ == Fault::kMissing) {
      return NotFound("no such row");
    }
    const Status got = store_->Get(table, key, value);
    if (strikes && got.ok()) {
      Damage(value);
    }
    return got;
  }

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    const bool strikes = Strikes(fault_ != Fault::kMissing);
    if (strikes && Fails()) {
      return Broken();
    }
    return store_->Scan(table, from, to, [&](std::string_view key, std::string_view value) {
      std::string copy(value);
      if (strikes && fault_ == Fault::kShortKey) {
        key.remove_suffix(1);
      } else if (strikes && !copy.empty()) {
        Damage(&copy);
      }
      return visit(key, copy);
    });
  }

  bool struck() const { return reads_ > at_; }

 private:
  bool Strikes(bool counts) const {
    if (!counts || fault_ == Fault::kNone) {
      return false;
    }
    const uint64_t read = reads_++;
    return read == at_ || (fault_ == Fault::kGone && read > at_);
  }

  bool Fails() const { return fault_ == Fault::kFails || fault_ == Fault::kGone; }

  // A row without which the other tables do not fall apart.
  static bool HoldsOneJob(storage::Table table) {
    return table != storage::Table::kMeta && table != storage::Table::kQueues;
  }

  Status Broken() const {
    return at_ % 3 == 0   ? Unavailable("the disk does not answer", "storage_io")
           : at_ % 3 == 1 ? Internal("the store makes no sense", "storage_bug")
                          : PermissionDenied("the server of files forbids it");
  }

  static void Damage(std::string* value) {
    (*value)[value->size() / 2] = static_cast<char>((*value)[value->size() / 2] ^ 4);
  }

  const storage::JobReader* store_;
  Fault fault_;
  uint64_t at_;
  mutable uint64_t reads_ = 0;
};

bool IsFailure(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kInternal ||
         code == StatusCode::kPermissionDenied;
}

// What an answer says, as far as it must not depend on luck.
std::string Digest(const Reply& reply) {
  std::string text;
  const auto add = [&text](uint64_t number) { text += std::to_string(number) + " "; };
  if (const auto* enqueued = std::get_if<Enqueued>(&reply.body)) {
    for (const auto& item : enqueued->items) {
      add(ToInt(item.job.id));
      add(item.existed ? 1 : 0);
    }
  } else if (const auto* one = std::get_if<Indirect<JobView>>(&reply.body)) {
    add(ToInt((*one)->id));
    text += std::string(JobStateName((*one)->state)) + " " + (*one)->payload.value_or("");
  } else if (const auto* leased = std::get_if<Leased>(&reply.body)) {
    for (const JobView& job : leased->jobs) {
      add(ToInt(job.id));
      text += *job.payload + " ";
    }
  } else if (const auto* list = std::get_if<JobList>(&reply.body)) {
    for (const JobView& job : list->jobs) {
      add(ToInt(job.id));
    }
    text += list->next_cursor;
  } else if (const auto* kicked = std::get_if<Kicked>(&reply.body)) {
    add(kicked->count);
  } else if (const auto* many = std::get_if<ChangedMany>(&reply.body)) {
    add(many->matched);
    add(many->changed);
  } else if (const auto* cancelled = std::get_if<CancelledIds>(&reply.body)) {
    add(cancelled->cancelled);
  } else if (const auto* acked = std::get_if<AckedMany>(&reply.body)) {
    add(acked->acked);
  } else if (const auto* forecast = std::get_if<ForecastView>(&reply.body)) {
    for (const auto& step : forecast->steps) {
      add(step.count);
    }
  }
  return text;
}

bool TellsOfDamage(const Reply& reply) {
  if (const auto* cancelled = std::get_if<CancelledIds>(&reply.body)) {
    return std::ranges::any_of(cancelled->refused, [](const auto& refused) {
      return refused.status.reason() == "data_loss";
    });
  }
  if (const auto* list = std::get_if<JobList>(&reply.body)) {
    return std::ranges::any_of(list->jobs, [](const JobView& job) {
      return job.last_error.find(": record ") != std::string::npos;
    });
  }
  return reply.status.code() == StatusCode::kDataLoss;
}

class Life {
 public:
  // Memory holds few jobs, so that the others are read when they are wanted, or all that are near.
  static constexpr size_t kFew = 12;
  static constexpr size_t kAll = 1000;

  explicit Life(Fault fault, uint64_t at = 0, size_t memory_jobs_max = kFew)
      : fault_(fault), at_(at), memory_jobs_max_(memory_jobs_max) {}

  // The second half of a life that began without faults; ends at what the engine cannot survive.
  void Run() {
    Start(Fault::kNone, 0);
    Past();
    engine_.reset();
    clock_.Advance(5s);
    if (Start(fault_, at_)) {
      Present();
    }
  }

  bool struck() const { return reads_->struck(); }

  // By request: the status of a refusal, else the digest.
  const std::map<RequestId, Reply>& replies() const { return replies_; }

  const Status& fatal() const { return fatal_; }

  bool told() const { return told_; }

 private:
  bool Start(Fault fault, uint64_t at) {
    reads_ = std::make_unique<FaultyReads>(&store_, fault, at);
    auto loaded = Engine::Load({.boot_id = 7,
                                .queues = {{"b", {.history_retention = 1h}}},
                                .horizon = 10s,
                                .memory_jobs_max = memory_jobs_max_},
                               *reads_,
                               clock_.Sample());
    if (!loaded.ok()) {
      fatal_ = loaded.status();
      return false;
    }
    engine_ = std::move(loaded).value();
    Turn();
    return true;
  }

  void Turn() {
    while (engine_->Advance(clock_.Sample())) {
    }
    while (const auto sealed = engine_->Seal(clock_.Sample())) {
      ASSERT_TRUE(store_.Commit(*sealed->batch).ok());
      engine_->Committed(sealed->sequence);
    }
    told_ = told_ || !engine_->TakeIncidents().empty();
    fatal_ = engine_->fatal();
    for (Reply& reply : engine_->TakeReplies()) {
      told_ = told_ || TellsOfDamage(reply);
      replies_.emplace(reply.request, std::move(reply));
    }
  }

  // The answer, once the turn is over; none when there is none.
  const Reply* Call(Command command) {
    const RequestId request = next_request_++;
    engine_->Execute(request, std::move(command), clock_.Sample());
    Turn();
    const auto found = replies_.find(request);
    return found == replies_.end() ? nullptr : &found->second;
  }

  std::vector<LeaseToken> LeaseSome(uint32_t count, const std::string& queue = "a") {
    return TokensOf(Call(Lease{.queues = {queue}, .count = count, .lease = Millis(20s)}));
  }

  static std::vector<LeaseToken> TokensOf(const Reply* reply) {
    std::vector<LeaseToken> tokens;
    if (reply != nullptr && reply->status.ok()) {
      for (const JobView& job : std::get<Leased>(reply->body).jobs) {
        tokens.push_back(*job.lease_token);
      }
    }
    return tokens;
  }

  static JobSpec Spec(Millis delay,
                      const std::string& payload,
                      const std::string& key = {},
                      const std::string& queue = "a") {
    return {.queue = queue, .due = DueAfter{delay}, .payload = payload, .key = key};
  }

  // A store with jobs of every kind.
  void Past() {
    for (int i = 0; i < 10; ++i) {
      const std::string number = std::to_string(i);
      Call(Enqueue{{Spec(0s, "ready " + number, "r" + number)}});
      Call(Enqueue{{Spec(1h + Millis(i), "far " + number, "f" + number)}});
    }
    Call(Enqueue{{Spec(6s, std::string(5000, 'b'))}});
    JobSpec absolute = Spec(0s, "absolute");
    absolute.due = DueAt{clock_.Sample().wall + 4s};
    Call(Enqueue{{absolute}});
    const std::vector<LeaseToken> tokens = LeaseSome(6);
    Call(Bury{.token = tokens.at(0), .error = "no use"});
    Call(Bury{.token = tokens.at(1), .error = "no use"});
    Call(Bury{.token = tokens.at(2), .error = "no use"});
    Call(Ack{tokens.at(3)});
    Call(Ack{tokens.at(4)});
    Call(Enqueue{{Spec(0s, "kept", "k", "b")}, "uid:1"});
    Call(Enqueue{{Spec(2h, "waits", "w", "b"), Spec(3h, "waits too", "", "b")}});
    Call(Enqueue{{Spec(2min, "in time", "", "c")}});
    Call(Pause{.queue = "a", .duration = Millis(6s)});
  }

  void Present() {
    const std::vector<std::function<void()>> steps = {
        [this] { Look(); },
        [this] { Change(); },
        [this] { ChangeMany(); },
        [this] { WorkWithHistory(); },
        [this] { Work(); },
        [this] { TimePasses(); },
    };
    for (const auto& step : steps) {
      if (fatal_.ok()) {
        step();
      }
    }
  }

  void Look() {
    Call(Show{JobId{1}});
    Call(Show{JobId{21}});  // with a big payload
    for (const char* key : {"r0", "r3", "f3", "none"}) {
      Call(Show{KeyRef{"a", key}});
    }
    for (const auto which : {Peek::Which::kReady, Peek::Which::kDelayed, Peek::Which::kBuried}) {
      Call(Peek{.queue = "a", .which = which});
    }
    for (const auto state : {JobState::kScheduled, JobState::kDead, JobState::kFinished}) {
      Call(List{.queue = "a", .state = state, .with_payload = true});
    }
    Call(List{.due_before = clock_.Sample().wall + 2h, .with_payload = true});
    const WallTime from = clock_.Sample().wall;
    Call(Forecast{.queue = "a", .from = from, .to = from + 2h, .step = Millis(30min)});
    Call(Forecast{.from = from, .to = from + 2h, .step = Millis(1h)});
    Call(ListQueues{});
    Call(GetStats{});
  }

  void Change() {
    Call(Enqueue{{Spec(0s, "ready 1", "r1"), Spec(2s, "new")}});
    Call(Enqueue{{Spec(0s, "ready 3", "r3")}});  // finished
    JobSpec other = Spec(0s, "ready 5", "r5");
    other.on_conflict = OnConflict::kReplace;
    Call(Enqueue{{other}});
    Call(Cancel{KeyRef{"a", "f0"}});
    Call(Cancel{JobId{4}});
    Call(Reschedule{.job = KeyRef{"a", "f2"}, .due = DueAfter{3s}});
    Call(Touch{KeyRef{"a", "f3"}});
    Call(Kick{KeyRef{"a", "f4"}});
    Call(Kick{KeyRef{"a", "r0"}});
    Call(KickQueue{.queue = "a", .count = 1});
    for (const LeaseToken& token : TokensOf(Call(LeaseJob{.job = KeyRef{"a", "f5"}}))) {
      Call(GiveBack{token});
    }
    Call(LeaseJob{.job = KeyRef{"a", "r2"}});
    Call(LeaseJob{.job = JobId{21}});
  }

  void ChangeMany() {
    using Action = engine::ChangeMany::Action;
    const auto many = [this](Action action, JobState state, const char* prefix) {
      Call(engine::ChangeMany{.action = action,
                              .filter = {.queue = "a", .state = state, .key_prefix = prefix},
                              .due = DueSpec(DueAfter{2min})});
    };
    many(Action::kCancel, JobState::kScheduled, "f6");
    many(Action::kReschedule, JobState::kScheduled, "f7");
    many(Action::kKick, JobState::kDead, "r1");
    Call(engine::ChangeMany{.action = Action::kCancel, .filter = {.key_prefix = "f8"}});
    Call(KickQueue{.queue = "a", .count = 2});
    Call(KickQueue{.queue = "a", .count = 2});
    Call(CancelIds{{JobId{20}, JobId{9}, JobId{4711}}});
  }

  // What is kept of a job is all of it.
  void WorkWithHistory() {
    Call(Peek{.queue = "b", .which = Peek::Which::kDelayed});
    AckMany acks;
    acks.tokens = LeaseSome(1, "b");
    Call(acks);
    Call(Lease{.queues = {"b"}, .wait = Millis(1h)});
    Call(KickQueue{.queue = "b", .count = 2});
    Call(Show{KeyRef{"b", "k"}});
    Call(Enqueue{{Spec(0s, "kept", "k", "b")}});
    Call(List{.queue = "b", .state = JobState::kFinished, .with_payload = true});
  }

  void Work() {
    clock_.Advance(3s);
    Turn();
    if (!fatal_.ok()) {
      return;
    }
    Call(Resume{.queue = "a"});
    const std::vector<LeaseToken> tokens = LeaseSome(5);
    for (size_t i = 0; i < tokens.size(); ++i) {
      switch (i) {
        case 0:
          Call(Nack{.token = tokens[i], .delay = Millis(1s)});
          break;
        case 1:
          Call(Bury{.token = tokens[i]});
          break;
        case 2:
          Call(GiveBack{tokens[i]});
          break;
        case 3:
          Call(Extend{.token = tokens[i], .lease = Millis(30s)});
          break;
        default:
          break;  // its lease runs out
      }
    }
  }

  // Leases end, the wall clock is set back, pages are loaded, what is finished is forgotten.
  void TimePasses() {
    Call(Lease{.queues = {"c"}, .wait = Millis(1h)});
    clock_.StepWall(-2s);
    Turn();
    for (const Millis by : {Millis(25s), Millis(10min), Millis(1h), Millis(24h * 30)}) {
      if (!fatal_.ok()) {
        return;
      }
      clock_.Advance(by);
      Turn();
      if (fatal_.ok()) {
        LeaseSome(30);
      }
    }
  }

  Fault fault_;
  uint64_t at_;
  size_t memory_jobs_max_;
  storage::MemoryJobStore store_;
  SimulatedClock clock_{
      Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)}};
  std::unique_ptr<FaultyReads> reads_;
  std::unique_ptr<Engine> engine_;
  RequestId next_request_ = 1;
  std::map<RequestId, Reply> replies_;
  Status fatal_;
  bool told_ = false;
};

// Sanitizers take thirty times as long for a life.
#if defined(DELAYD_SANITIZED)
constexpr uint64_t kStride = 7;
#else
constexpr uint64_t kStride = 1;
#endif

// Of each read of a life in turn, or each kStride-th; how many lives that took.
template <typename Check>
uint64_t EachRead(Fault fault, size_t memory_jobs_max, const Check& check) {
  uint64_t lives = 0;
  uint64_t at = 0;
  for (bool struck = true; struck && !::testing::Test::HasFailure(); at += kStride) {
    ++lives;
    SCOPED_TRACE("read " + std::to_string(at));
    Life life(fault, at, memory_jobs_max);
    life.Run();
    struck = life.struck();
    check(life);
  }
  return lives;
}

void ExpectNoWrongAnswer(Fault fault, size_t memory_jobs_max) {
  Life good(Fault::kNone, 0, memory_jobs_max);
  good.Run();
  ASSERT_TRUE(good.fatal().ok()) << good.fatal().message();
  uint64_t ended = 0;
  const uint64_t reads = EachRead(fault, memory_jobs_max, [&](const Life& life) {
    ended += life.fatal().ok() ? 0U : 1U;
    if (!life.fatal().ok()) {
      EXPECT_TRUE(IsFailure(life.fatal().code())) << life.fatal().message();
    }
    for (const auto& [request, reply] : life.replies()) {
      const Reply& expected = good.replies().at(request);
      if (!IsFailure(reply.status.code())) {
        EXPECT_EQ(reply.status.code(), expected.status.code()) << reply.status.message();
        EXPECT_EQ(Digest(reply), Digest(expected)) << "request " << request;
      }
    }
  });
  EXPECT_GT(reads, 100 / kStride);
  EXPECT_GT(ended, reads * 9 / 10);
}

TEST(ReadFaultTest, AReadThatFailsEndsTheEngineAndNoWrongAnswerIsGiven) {
  ExpectNoWrongAnswer(Fault::kFails, Life::kFew);
  ExpectNoWrongAnswer(Fault::kFails, Life::kAll);
}

TEST(ReadFaultTest, ADiskThatIsGoneEndsTheEngineOnce) {
  ExpectNoWrongAnswer(Fault::kGone, Life::kFew);
  ExpectNoWrongAnswer(Fault::kGone, Life::kAll);
}

void ExpectNoWrongPayload(const Life& life) {
  static const std::set<std::string> payloads = [] {
    std::set<std::string> all = {
        "absolute", "new", "kept", "waits", "waits too", "in time", std::string(5000, 'b')};
    for (int i = 0; i < 10; ++i) {
      all.insert({"ready " + std::to_string(i), "far " + std::to_string(i)});
    }
    return all;
  }();
  for (const auto& [request, reply] : life.replies()) {
    if (const auto* leased = std::get_if<Leased>(&reply.body)) {
      for (const JobView& job : leased->jobs) {
        EXPECT_TRUE(payloads.contains(*job.payload)) << *job.payload;
      }
    }
  }
  if (!life.fatal().ok()) {
    EXPECT_EQ(life.fatal().code(), StatusCode::kDataLoss) << life.fatal().message();
  }
}

void ExpectDamageIsNamed(Fault fault, size_t memory_jobs_max) {
  Life good(Fault::kNone, 0, memory_jobs_max);
  good.Run();
  uint64_t named = 0;
  const uint64_t reads = EachRead(fault, memory_jobs_max, [&](const Life& life) {
    named += life.told() || !life.fatal().ok() ? 1U : 0U;
    ExpectNoWrongPayload(life);
    if (!life.told() && life.fatal().ok()) {
      // Nobody needed what was damaged: then all is as it was.
      for (const auto& [request, reply] : life.replies()) {
        EXPECT_EQ(Digest(reply), Digest(good.replies().at(request))) << "request " << request;
      }
    }
  });
  EXPECT_GT(named, reads / 3);
}

TEST(ReadFaultTest, P9ADamagedReadIsNamedAndNoPayloadIsWrong) {
  ExpectDamageIsNamed(Fault::kDamaged, Life::kFew);
  ExpectDamageIsNamed(Fault::kDamaged, Life::kAll);
}

TEST(ReadFaultTest, P9AKeyThatIsNoKeyIsNamedAndNoPayloadIsWrong) {
  ExpectDamageIsNamed(Fault::kShortKey, Life::kFew);
  ExpectDamageIsNamed(Fault::kShortKey, Life::kAll);
}

// A job without its row of the index is not known any more; whoever finds it elsewhere says so.
TEST(ReadFaultTest, P9ARowThatIsMissingEndsNothingAndNoPayloadIsWrong) {
  for (const size_t memory_jobs_max : {Life::kFew, Life::kAll}) {
    uint64_t named = 0;
    EachRead(Fault::kMissing, memory_jobs_max, [&](const Life& life) {
      named += life.told() ? 1U : 0U;
      ExpectNoWrongPayload(life);
      EXPECT_TRUE(life.fatal().ok()) << life.fatal().message();
    });
    EXPECT_GT(named, 10U);
  }
}

// One timer row cannot be read.
class OneRowFails final : public ReadsThrough {
 public:
  using ReadsThrough::ReadsThrough;

  Status Get(storage::Table table, std::string_view key, std::string* value) const override {
    return table == storage::Table::kTimers && key == row
               ? Unavailable("the disk does not answer", "storage_io")
               : ReadsThrough::Get(table, key, value);
  }

  std::string row;
};

// Which state a job on disk has is in its row: an answer that leaves it out would be wrong.
TEST(ReadFaultTest, AJobOnDiskWhoseRowFailsIsNotLeftOutOfAListOrAForecast) {
  EngineHarness harness(kTenJobs);
  const JobView waits = harness.EnqueueOk(In(30min));
  harness.clock().StepWall(kHour);  // its row is keyed before now
  for (int i = 0; i < 40; ++i) {
    harness.EnqueueOk(In(0s));
  }
  const JobView ready = harness.EnqueueOk(In(0s));
  const WallTime now = harness.now().wall;
  const Forecast forecast{.from = now - kHour, .to = now + kHour, .step = kHour};
  for (const auto& [row, command] :
       {std::pair(storage::TimerKey(ready.due, ready.id), Command(List{.state = JobState::kReady})),
        std::pair(storage::TimerKey(waits.due, waits.id), Command(forecast))}) {
    OneRowFails reads(harness.store());
    EngineOptions options = kTenJobs;
    options.boot_id = kBootId;
    auto loaded = Engine::Load(options, reads, harness.now());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    while ((*loaded)->Advance(harness.now())) {
    }
    reads.row = std::string(row.view());
    (*loaded)->Execute(1, command, harness.now());
    EXPECT_EQ((*loaded)->fatal().code(), StatusCode::kUnavailable) << CommandName(command);
  }
}

TEST(ReadFaultTest, WhoAsksForTheJobWhoseRowFailsIsNotToldThatThereIsNone) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(0s));
  OneRowFails reads(harness.store());
  reads.row = std::string(storage::TimerKey(job.due, job.id).view());
  auto loaded = Engine::Load({.boot_id = kBootId}, reads, harness.now());
  (*loaded)->Execute(1, Lease{.queues = {"default"}}, harness.now());
  EXPECT_EQ((*loaded)->fatal().code(), StatusCode::kUnavailable);
  EXPECT_TRUE((*loaded)->TakeReplies().empty());
}

}  // namespace
}  // namespace delayd::engine

// Rows that no engine has written, or that are not there: a start refuses what it cannot put right,
// and whoever meets one later says which job it is about.
#include <functional>

#include <gmock/gmock.h>

#include "base/limits.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/verify.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;
using storage::Table;
using ::testing::HasSubstr;

void Put(EngineHarness* harness, Table table, std::string_view key, std::string_view value) {
  storage::Batch batch;
  batch.Put(table, key, value);
  ASSERT_TRUE(harness->store().Commit(batch).ok());
}

void Erase(EngineHarness* harness, Table table, std::string_view key) {
  storage::Batch batch;
  batch.Delete(table, key);
  ASSERT_TRUE(harness->store().Commit(batch).ok());
}

// What a start says to the store as it is.
Status Start(EngineHarness* harness) {
  return Engine::Load({.boot_id = kBootId}, harness->store(), harness->now()).status();
}

void PutQueue(EngineHarness* harness, const std::string& name, uint32_t id) {
  Put(harness, Table::kQueues, name, storage::EncodeQueueRecord(name, {.id = QueueId{id}}));
}

std::string KeyOf(const JobView& job) {
  return storage::TimerKey(job.due, job.id);
}

TEST(DamagedStartTest, P9AQueueWhoseIdIsNoneOrAnothersIsRefused) {
  for (const uint32_t id : {0U, 1U, limits::kQueueIdMax + 1}) {
    EngineHarness harness;
    harness.EnqueueOk(In(1s));  // of queue 1
    PutQueue(&harness, "other", id);
    const Status status = Start(&harness);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << id;
    EXPECT_THAT(status.message(), HasSubstr("its id " + std::to_string(id)));
  }
}

TEST(DamagedStartTest, P9TheNumberOfAQueueWhoseNameIsLostIsGivenToNobody) {
  EngineHarness harness;
  JobSpec dead = In(1s);
  dead.queue = "lost";
  dead.buried = true;
  const JobView job = harness.EnqueueOk(dead);
  Erase(&harness, Table::kQueues, "lost");
  harness.Restart();
  const std::vector<Status> incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_THAT(incidents.front().message(), HasSubstr("queue number 1 is not known"));
  harness.EnqueueOk(In(1s));
  std::string row;
  ASSERT_TRUE(harness.store().Get(Table::kQueues, "default", &row).ok());
  EXPECT_EQ(storage::DecodeQueueRecord("default", row)->id, QueueId{2});
  EXPECT_EQ(harness.ReasonOf(Show{job.id}), "damaged");
}

// Of two due jobs one cannot be handed out. Afterwards the low-water mark would stand at now, but
// for that one.
void ExpectOnlyTheOtherIsWorked(EngineHarness* harness, const JobView& other) {
  const std::vector<JobView> leased = harness->LeaseNow(2);
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased.front().id, other.id);
  AckAll(harness, leased);
  harness->Wait(1h);
  harness->EnqueueOk(In(0s));
}

// Those that a start loads, and those that are loaded later.
TEST(DamagedStartTest, P9JobsOfAQueueWhoseNameIsLostAreLeftAloneAndTheOthersGoOn) {
  for (const Millis delay : {Millis(1s), Millis(1h)}) {
    EngineHarness harness;
    const JobView left = harness.EnqueueOk(ForQueue("lost", delay));
    const JobView other = harness.EnqueueOk(In(delay));
    std::string name;
    ASSERT_TRUE(harness.store().Get(Table::kQueues, "lost", &name).ok());
    Erase(&harness, Table::kQueues, "lost");
    harness.Restart();
    EXPECT_EQ(harness.engine().TakeIncidents().size(), 1U);
    harness.Wait(delay + 1ms);
    ASSERT_TRUE(harness.engine().fatal().ok()) << harness.engine().fatal().message();
    ASSERT_NO_FATAL_FAILURE(ExpectOnlyTheOtherIsWorked(&harness, other));
    EXPECT_EQ(harness.ReasonOf(Cancel{left.id}), "damaged");
    Put(&harness, Table::kQueues, "lost", name);
    harness.Restart();
    ASSERT_EQ(harness.LeaseNow(1, "lost").size(), 1U);
  }
}

TEST(DamagedStartTest, P9AJobOfAQueueThatIsNotThereIsRefused) {
  for (const uint32_t id : {2U, 4711U}) {
    EngineHarness harness;
    harness.EnqueueOk(In(1s));
    PutQueue(&harness, "third", 3);  // there is no second
    const std::string key = storage::TimerKey(harness.now().wall + 1s, JobId{99});
    const storage::JobRecord record{
        .id = JobId{99}, .queue = QueueId{id}, .due = harness.now().wall + 1s};
    Put(&harness, Table::kTimers, key, storage::EncodeJobRecord(Table::kTimers, key, record));
    EXPECT_THAT(Start(&harness).message(), HasSubstr("queue number " + std::to_string(id)));
  }
}

TEST(DamagedStartTest, P9CountsThatDoNotFitTheJobsAreRefusedAndNoneAreNoJobs) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(1s));
  const std::string counts = storage::QueueCountsKey(QueueId{1});
  for (const uint64_t pending : {0U, 2U}) {
    Put(&harness, Table::kMeta, counts, storage::EncodeQueueCounts(counts, {pending, 0}));
    EXPECT_EQ(Start(&harness).code(), StatusCode::kDataLoss) << pending;
  }
  Put(&harness, Table::kMeta, counts, "no record");
  EXPECT_EQ(Start(&harness).code(), StatusCode::kDataLoss);
  Erase(&harness, Table::kMeta, counts);
  EXPECT_EQ(Start(&harness).code(), StatusCode::kDataLoss);
  Erase(&harness, Table::kTimers, KeyOf(job));
  EXPECT_TRUE(Start(&harness).ok());
}

TEST(DamagedStartTest, P9ADamagedCountOfAUserIsRefusedAndNoneIsNoUser) {
  EngineHarness harness;
  const std::string key = storage::UserJobsKey("uid:1");
  Put(&harness, Table::kMeta, key, storage::EncodeNumber(key, 0));
  harness.Restart();
  EXPECT_TRUE(harness.engine().Figures(9).users.empty());
  Put(&harness, Table::kMeta, key, "no record");
  EXPECT_THAT(Start(&harness).message(), HasSubstr("user/uid:1"));
}

// A start, and whoever loads jobs later, reads no more than the head of a record.
TEST(DamagedStartTest, P9AJobWhoseHeadIsDamagedIsHeldBackAndTheOthersGoOn) {
  for (const Millis delay : {Millis(1s), Millis(1h)}) {
    EngineHarness harness;
    const JobView damaged = harness.EnqueueOk(In(delay));
    const JobView other = harness.EnqueueOk(In(delay));
    Put(&harness, Table::kTimers, KeyOf(damaged), "\x01");
    harness.Restart();
    harness.Wait(delay + 1ms);
    ASSERT_TRUE(harness.engine().fatal().ok()) << harness.engine().fatal().message();
    const std::vector<Status> incidents = harness.engine().TakeIncidents();
    ASSERT_EQ(incidents.size(), 1U);
    EXPECT_THAT(incidents.front().message(),
                HasSubstr("job " + std::to_string(ToInt(damaged.id)) + ":"));
    EXPECT_EQ(harness.engine().stats().damaged, 1U);
    ASSERT_NO_FATAL_FAILURE(ExpectOnlyTheOtherIsWorked(&harness, other));
    EXPECT_EQ(harness.ReasonOf(Cancel{damaged.id}), "data_loss");
    harness.Restart();
    EXPECT_EQ(harness.engine().TakeIncidents().size(), 1U);
    EXPECT_EQ(harness.LeaseNow(2).size(), 1U);
  }
}

TEST(DamagedStartTest, P9AJobOfWhichNeitherHeadNorIndexTellsTheQueueIsRefused) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(1s));
  Put(&harness, Table::kTimers, KeyOf(job), "\x01");
  for (const std::string& row :
       {std::string("no record"),
        storage::EncodeIndexRecord(
            storage::IndexKey(job.id),
            {.place = storage::IndexRecord::Place::kTimers, .queue = QueueId{2}, .at = job.due})}) {
    Put(&harness, Table::kIndex, storage::IndexKey(job.id), row);
    EXPECT_THAT(Start(&harness).message(), HasSubstr("job 1:"));
  }
  Erase(&harness, Table::kIndex, storage::IndexKey(job.id));
  EXPECT_EQ(Start(&harness).code(), StatusCode::kDataLoss);
}

// Wrong counts besides a damaged record: the repair must not make of them what a start refuses.
TEST(DamagedStartTest, P9AfterARepairADamagedRecordRefusesNoStart) {
  for (const uint64_t counted : {0U, 1U, 3U}) {
    EngineHarness harness;
    const JobView job = harness.EnqueueOk(In(1s, "what will be damaged"));
    harness.EnqueueOk(In(1s));
    std::string record;
    ASSERT_TRUE(harness.store().Get(Table::kTimers, KeyOf(job), &record).ok());
    record[record.find("damaged")] ^= 1;
    Put(&harness, Table::kTimers, KeyOf(job), record);
    const std::string counts = storage::QueueCountsKey(QueueId{1});
    Put(&harness, Table::kMeta, counts, storage::EncodeQueueCounts(counts, {counted, 0}));
    auto report = storage::VerifyStore(harness.store());
    ASSERT_TRUE(report.ok());
    ASSERT_TRUE(harness.store().Commit(report->repair).ok());
    EXPECT_TRUE(Start(&harness).ok()) << Start(&harness).message();
    report = storage::VerifyStore(harness.store());
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->disagreements.empty()) << "a record is damaged still";
    for (const storage::Disagreement& left : report->disagreements) {
      EXPECT_THAT(left.what, HasSubstr("job " + std::to_string(ToInt(job.id)) + ": "));
    }
  }
}

// A job in each place where its record may be, and what it is called when that is gone.
TEST(DamagedRowsTest, P9AMissingRecordIsNamedWhereverItWas) {
  EngineHarness harness;
  const JobView pending = harness.EnqueueOk(In(0s));
  const JobView big = harness.EnqueueOk(In(1h, std::string(9000, 'b')));
  const JobView finished = harness.EnqueueOk(Keyed("k", 1h));
  ASSERT_TRUE(harness.Call(Cancel{finished.id}).status.ok());
  Erase(&harness, Table::kTimers, KeyOf(pending));
  Erase(&harness, Table::kBig, storage::IndexKey(big.id));
  Erase(&harness, Table::kDone, storage::DoneKey(harness.now().wall, finished.id));
  const auto expect_named = [&](Command command, JobId id, const std::string& what) {
    const Status status = harness.Call(std::move(command)).status;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("job " + std::to_string(ToInt(id)) + ": " + what));
  };
  expect_named(Show{pending.id}, pending.id, "its record is missing");
  expect_named(Show{big.id}, big.id, "its payload is missing");
  expect_named(LeaseJob{.job = big.id}, big.id, "its payload is missing");
  expect_named(Show{finished.id}, finished.id, "the record of its end is missing");
  expect_named(Show{KeyRef{"default", "k"}}, finished.id, "the record of its end is missing");
  EXPECT_TRUE(harness.LeaseNow().empty());
  ASSERT_EQ(harness.engine().TakeIncidents().size(), 1U);
  EXPECT_TRUE(harness.engine().fatal().ok());
}

// What a loss leaves where a queue was new: the row of its name is gone, and not those of its jobs.
TEST(DamagedRowsTest, P9ARowOfAQueueThatIsNotKnownIsRefusedAndEndsNothing) {
  constexpr QueueId kUnknown{7};
  EngineHarness harness({.defaults = {.history_retention = 1h}});
  const JobView other = harness.EnqueueOk(In(0s));
  const WallTime at = harness.now().wall;
  const auto put_index = [&](uint64_t id, storage::IndexRecord::Place place) {
    const std::string key = storage::IndexKey(JobId{id});
    Put(&harness,
        Table::kIndex,
        key,
        storage::EncodeIndexRecord(
            key, {.place = place, .queue = kUnknown, .at = at, .plain = id == 90}));
  };
  using Place = storage::IndexRecord::Place;
  put_index(90, Place::kTimers);
  put_index(91, Place::kDead);
  put_index(92, Place::kDone);
  const std::string done = storage::DoneKey(at, JobId{92});
  Put(&harness,
      Table::kDone,
      done,
      storage::EncodeDoneRecord(done, {.queue = kUnknown, .kept_until = at + 1h}));
  for (const uint64_t id : {90U, 91U, 92U}) {
    for (const Command& command : {Command(Show{JobId{id}}),
                                   Command(Cancel{.job = JobId{id}, .brief = true}),
                                   Command(Kick{JobId{id}}),
                                   Command(Reschedule{.job = JobId{id}, .priority = 1}),
                                   Command(LeaseJob{.job = JobId{id}})}) {
      const Status status = harness.Call(command).status;
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.message();
      EXPECT_THAT(status.message(), HasSubstr("job " + std::to_string(id) + " is in queue number"));
    }
  }
  const Reply listed = harness.Call(List{.state = JobState::kFinished});
  ASSERT_EQ(std::get<JobList>(listed.body).jobs.size(), 1U);
  EXPECT_THAT(std::get<JobList>(listed.body).jobs.at(0).last_error, HasSubstr("is not known"));
  EXPECT_EQ(harness.LeaseNow().at(0).id, other.id);
  EXPECT_TRUE(harness.engine().fatal().ok());
}

TEST(DamagedRowsTest, P9AJobWithoutItsPayloadIsNamedInAListWithPayloadsAndTheOthersAreThere) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(1h, std::string(9000, 'b')));
  const JobView other = harness.EnqueueOk(In(2h, "whole"));
  Erase(&harness, Table::kBig, storage::IndexKey(job.id));
  const Reply listed = harness.Call(List{.with_payload = true});
  ASSERT_TRUE(listed.status.ok()) << listed.status.message();
  const std::vector<JobView>& jobs = std::get<JobList>(listed.body).jobs;
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].due, job.due);
  EXPECT_EQ(jobs[0].queue, "default");
  EXPECT_EQ(jobs[0].payload, std::nullopt);
  EXPECT_THAT(jobs[0].last_error, HasSubstr("its payload is missing"));
  EXPECT_EQ(jobs[1].payload, "whole");
}

TEST(DamagedRowsTest, P9ADeadJobWithoutItsPayloadIsNamed) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(0s, std::string(9000, 'b')));
  ASSERT_TRUE(harness.Call(Bury{.token = *harness.LeaseNow().at(0).lease_token}).status.ok());
  Erase(&harness, Table::kBig, storage::IndexKey(job.id));
  const List list{.queue = "default", .state = JobState::kDead, .with_payload = true};
  const Reply listed = harness.Call(list);
  ASSERT_TRUE(listed.status.ok()) << listed.status.message();
  ASSERT_EQ(std::get<JobList>(listed.body).jobs.size(), 1U);
  const JobView& shown = std::get<JobList>(listed.body).jobs.front();
  EXPECT_EQ(shown.id, job.id);
  EXPECT_EQ(shown.payload, std::nullopt);
  EXPECT_THAT(shown.last_error, HasSubstr("its payload is missing"));
}

TEST(DamagedRowsTest, P9AKeyAmongTheDeadThatIsNoKeyEndsAChangeOfThemAll) {
  EngineHarness harness;
  harness.EnqueueOk(In(0s));
  const std::string key = storage::DeadKey(QueueId{1}, harness.now().wall, JobId{9});
  Put(&harness, Table::kDead, key.substr(0, key.size() - 1), "");
  const ChangeMany command{.filter = {.queue = "default", .state = JobState::kDead}};
  EXPECT_EQ(harness.Call(command).status.code(), StatusCode::kDataLoss);
}

TEST(DamagedRowsTest, P9AKeyAmongTheDeadThatIsNoKeyEndsAKickByNumber) {
  EngineHarness harness;
  JobSpec buried = In(0s);
  buried.buried = true;
  harness.EnqueueOk(buried);
  const std::string key = storage::DeadKey(QueueId{1}, harness.now().wall + 1ms, JobId{9});
  Put(&harness, Table::kDead, key.substr(0, key.size() - 1), "");
  harness.Wait(2ms);
  harness.EnqueueOk(buried);  // what is met behind it does not hide it
  const KickQueue command{.queue = "default", .count = 2};
  EXPECT_EQ(harness.Call(command).status.code(), StatusCode::kDataLoss);
}

// The first cannot be read, so that another one is sought behind the second, and the key is met.
TEST(DamagedRowsTest, P9AKickByNumberThatIsAnsweredWithDamageHasKickedNothing) {
  EngineHarness harness;
  JobSpec buried = In(0s);
  buried.buried = true;
  std::vector<JobView> dead;
  for (int i = 0; i < 3; ++i) {
    dead.push_back(harness.EnqueueOk(buried));
  }
  const WallTime died = harness.now().wall;
  Put(&harness, Table::kDead, storage::DeadKey(QueueId{1}, died, dead[0].id), "no record");
  const std::string key = storage::DeadKey(QueueId{1}, died + 1ms, JobId{9});
  Put(&harness, Table::kDead, key.substr(0, key.size() - 1), "");
  EXPECT_EQ(harness.ReasonOf(KickQueue{.queue = "default", .count = 2}), "data_loss");
  EXPECT_EQ(harness.ShowOk(dead[1].id).state, JobState::kDead);
  EXPECT_EQ(harness.engine().stats().kicked, 0U);
}

// Two far jobs; where the first is cannot be told any more.
std::pair<JobView, JobView> DamageThePlaceOfTheFirst(EngineHarness* harness) {
  const JobView damaged = harness->EnqueueOk(In(1h));
  const JobView other = harness->EnqueueOk(In(2h));
  Put(harness, Table::kIndex, storage::IndexKey(damaged.id), "no record");
  harness->Restart();  // the rows that came last are remembered
  return {damaged, other};
}

TEST(DamagedRowsTest, P9ADamagedPlaceOfAJobKeepsNoOtherOutOfAList) {
  EngineHarness harness({.horizon = 1min});
  const auto [damaged, other] = DamageThePlaceOfTheFirst(&harness);
  for (const auto& queue : {std::optional<std::string>("default"), std::optional<std::string>()}) {
    const Reply listed = harness.Call(List{.queue = queue, .state = JobState::kScheduled});
    ASSERT_TRUE(listed.status.ok()) << listed.status.message();
    const std::vector<JobView>& jobs = std::get<JobList>(listed.body).jobs;
    ASSERT_EQ(jobs.size(), 2U);
    EXPECT_EQ(jobs[0].id, damaged.id);
    EXPECT_EQ(jobs[0].due, damaged.due);
    EXPECT_EQ(jobs[0].queue, queue.value_or(""));
    EXPECT_THAT(jobs[0].last_error, HasSubstr("index of job"));
    EXPECT_EQ(jobs[1].id, other.id);
  }
  const Reply ready = harness.Call(List{.state = JobState::kReady});
  EXPECT_TRUE(std::get<JobList>(ready.body).jobs.empty());
}

TEST(DamagedRowsTest, P9ADamagedPlaceOfAJobKeepsNoOtherOutOfAChangeOfMany) {
  EngineHarness harness({.horizon = 1min});
  const auto [damaged, other] = DamageThePlaceOfTheFirst(&harness);
  const Reply changed = harness.Call(ChangeMany{.filter = {.queue = "default"}});
  ASSERT_TRUE(changed.status.ok()) << changed.status.message();
  EXPECT_EQ(std::get<ChangedMany>(changed.body).matched, 2U);
  EXPECT_EQ(std::get<ChangedMany>(changed.body).changed, 1U);
  const std::vector<Status> incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_THAT(incidents.front().message(),
              HasSubstr("index of job " + std::to_string(ToInt(damaged.id))));
  EXPECT_NE(harness.ReasonOf(Show{other.id}), "damaged");
}

TEST(DamagedRowsTest, P9ADamagedPlaceOfAJobKeepsNoOtherFromAPeekOrAKickByNumber) {
  EngineHarness harness({.horizon = 1min});
  const JobView other = DamageThePlaceOfTheFirst(&harness).second;
  const Reply next = harness.Call(Peek{.queue = "default", .which = Peek::Which::kDelayed});
  ASSERT_TRUE(next.status.ok()) << next.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(next.body)->id, other.id);
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 1U);
  const Reply kicked = harness.Call(KickQueue{.queue = "default", .count = 1});
  ASSERT_TRUE(kicked.status.ok()) << kicked.status.message();
  EXPECT_EQ(std::get<Kicked>(kicked.body).count, 1U);
  EXPECT_EQ(harness.LeaseNow(2).at(0).id, other.id);
  // Then it is the answer: that there is no such job would not be true.
  EXPECT_EQ(harness.ReasonOf(Peek{.queue = "default", .which = Peek::Which::kDelayed}),
            "data_loss");
  EXPECT_EQ(harness.ReasonOf(KickQueue{.queue = "default", .count = 1}), "data_loss");
}

TEST(DamagedRowsTest, P9AKickByNumberGoesOnPastScheduledJobsThatCannotBeRead) {
  EngineHarness harness;
  for (const Millis in : {Millis(1h), Millis(2h), Millis(3h)}) {
    Put(&harness, Table::kTimers, KeyOf(harness.EnqueueOk(In(in))), "rot");
  }
  const JobView good = harness.EnqueueOk(In(4h));
  const JobView later = harness.EnqueueOk(In(5h));
  const Reply kicked = harness.Call(KickQueue{.queue = "default", .count = 1});
  EXPECT_EQ(std::get<Kicked>(kicked.body).count, 1U);
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 3U);
  EXPECT_EQ(harness.LeaseNow(2).at(0).id, good.id);
  EXPECT_EQ(harness.ShowOk(later.id).state, JobState::kScheduled);
}

TEST(DamagedRowsTest, P9AKeyAmongTheFinishedThatIsNoKeyIsNamedAndKeepsNothingForLonger) {
  EngineHarness harness({.defaults = {.key_retention = 1min}});
  const JobView job = harness.EnqueueOk(Keyed("k", 1h));
  const WallTime finished = harness.now().wall;
  const std::string before = storage::DoneKey(finished, JobId{});
  Put(&harness, Table::kDone, before.substr(0, before.size() - 1), "");
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  harness.Wait(1min + 1s);
  std::string value;
  EXPECT_EQ(harness.store().Get(Table::kDone, storage::DoneKey(finished, job.id), &value).code(),
            StatusCode::kNotFound);
  const std::vector<Status> incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_THAT(incidents.front().message(), HasSubstr("done key"));
}

// A leased job whose record is gone ends all the same: what a history keeps of it is less.
TEST(DamagedRowsTest, AnAckOfAJobWhoseRecordIsGoneCountsAndIsReported) {
  EngineHarness harness({.defaults = {.history_retention = 1h}});
  const JobView job = harness.EnqueueOk(In(0s, "what it was about"));
  const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
  Erase(&harness, Table::kTimers, KeyOf(job));
  ASSERT_TRUE(harness.Call(Ack{token}).status.ok());
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 1U);
  EXPECT_EQ(harness.ShowOk(job.id).outcome, "acked");
  EXPECT_NE(harness.ShowOk(job.id).payload, "what it was about");
}

// Such a job is due on a wall clock that was set back, and the mark was ahead of it when it came.
TEST(DamagedRowsTest, AJobBelowTheMarkWhoseRecordIsDamagedIsNamedWhenItIsHandedOut) {
  for (const bool is_missing : {false, true}) {
    EngineHarness harness;
    harness.Wait(1s);
    harness.EnqueueOk(In(5h));  // carries the low-water mark to now
    const WallTime mark = harness.now().wall;
    harness.clock().StepWall(-1h);
    const JobView job = harness.EnqueueOk({.due = DueAt{harness.now().wall - 1s}});
    const std::string key = storage::TimerKey(mark, job.id);
    std::string value;
    ASSERT_TRUE(harness.store().Get(Table::kTimers, key, &value).ok());
    is_missing ? Erase(&harness, Table::kTimers, key) : Put(&harness, Table::kTimers, key, "\x09");
    harness.clock().StepWall(-1h);
    harness.Turn();
    EXPECT_TRUE(harness.LeaseNow().empty());
    harness.Wait(2h + 1ms);
    EXPECT_TRUE(harness.LeaseNow().empty());
    ASSERT_EQ(harness.engine().TakeIncidents().size(), 1U);
  }
}

// On disk only, behind a backlog.
TEST(DamagedRowsTest, AJobOnDiskThatCannotBeReadIsTakenForOneThatWaits) {
  EngineHarness harness({.horizon = 1min, .memory_jobs_max = 10});
  for (int i = 0; i < 40; ++i) {
    harness.EnqueueOk(In(0s));
  }
  const JobView gone = harness.EnqueueOk(In(0s));
  const JobView damaged = harness.EnqueueOk(In(0s));
  ASSERT_EQ(harness.ShowOk(gone.id).state, JobState::kReady);
  Erase(&harness, Table::kTimers, KeyOf(gone));
  Put(&harness, Table::kTimers, KeyOf(damaged), "\x09");
  for (const JobView& job : {gone, damaged}) {
    EXPECT_EQ(harness.Call(Kick{job.id}).status.code(), StatusCode::kDataLoss)
        << "a ready one would be refused as such";
  }
}

TEST(DamagedRowsTest, P9AJobOnDiskWhoseHeadIsDamagedIsHeldBackWhenItsTurnComes) {
  EngineHarness harness(kTenJobs);
  for (int i = 0; i < 40; ++i) {
    harness.EnqueueOk(In(0s));
  }
  const JobView damaged = harness.EnqueueOk(In(0s));
  harness.EnqueueOk(In(0s));
  Put(&harness, Table::kTimers, KeyOf(damaged), "\x09");
  EXPECT_EQ(WorkOff(&harness), 41U);
  EXPECT_TRUE(harness.engine().fatal().ok()) << harness.engine().fatal().message();
  EXPECT_EQ(harness.engine().TakeIncidents().size(), 1U);
}

// The row of a key that says less than its job does.
TEST(DamagedRowsTest, AKeyThatWasNotTakenAwayFromAFinishedJobStays) {
  EngineHarness harness({.defaults = {.key_retention = 1min}});
  const JobView job = harness.EnqueueOk(Keyed("k", 1h));
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  const std::string key = storage::ClientKey(QueueId{1}, "k");
  Put(&harness, Table::kKeys, key, storage::EncodeKeyRecord(key, {.id = job.id}));
  harness.Wait(1min + 1s);
  std::string value;
  EXPECT_TRUE(harness.store().Get(Table::kKeys, key, &value).ok());
  EXPECT_EQ(harness.ReasonOf(Show{job.id}), "not_found");
}

// The log never shows a client's key.
TEST(DamagedRowsTest, ADamagedKeyIsReportedByItsJob) {
  EngineHarness harness({.defaults = {.key_retention = 1min}});
  const JobView job = harness.EnqueueOk(Keyed("secret", 1h));
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  Put(&harness, Table::kKeys, storage::ClientKey(QueueId{1}, "secret"), "\x09");
  harness.Wait(1min + 1s);
  const std::vector<Status> incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_THAT(incidents[0].message(), ::testing::HasSubstr("job " + std::to_string(ToInt(job.id))));
  EXPECT_THAT(incidents[0].message(), ::testing::Not(::testing::HasSubstr("secret")));
}

// Programs before the history kept no end of a finished job's row; it went with its key's.
TEST(OlderRowsTest, AFinishedJobOfAnOlderProgramIsShownAndForgotten) {
  EngineHarness harness({.defaults = {.key_retention = 1min}});
  harness.EnqueueOk(In(5h));
  const WallTime finished = harness.now().wall;
  const std::string key = storage::ClientKey(QueueId{1}, "k");
  const std::string done = storage::DoneKey(finished, JobId{7});
  Put(&harness,
      Table::kKeys,
      key,
      storage::EncodeKeyRecord(key,
                               {.id = JobId{7}, .expiry = finished + 1min, .finished = finished}));
  Put(&harness,
      Table::kDone,
      done,
      storage::EncodeDoneRecord(
          done, {.queue = QueueId{1}, .key = "k", .due = finished, .created = finished}));
  harness.Restart();
  const Reply listed = harness.Call(List{.state = JobState::kFinished});
  EXPECT_EQ(std::get<JobList>(listed.body).jobs.size(), 1U);
  EXPECT_EQ(std::get<Indirect<JobView>>(harness.Call(Show{KeyRef{"default", "k"}}).body)->outcome,
            "acked");
  harness.Wait(1min + 1s);
  std::string value;
  EXPECT_EQ(harness.store().Get(Table::kDone, done, &value).code(), StatusCode::kNotFound);
  EXPECT_EQ(harness.store().Get(Table::kKeys, key, &value).code(), StatusCode::kNotFound);
}

TEST(DamagedRowsTest, AJobWhoseRecordIsGoodAgainCanBeCancelled) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(0s));
  std::string value;
  ASSERT_TRUE(harness.store().Get(Table::kTimers, KeyOf(job), &value).ok());
  Put(&harness, Table::kTimers, KeyOf(job), "no record");
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_EQ(harness.engine().stats().ready, 1U) << "it is there, whatever it is";
  EXPECT_EQ(harness.Call(Cancel{.job = job.id, .brief = true}).status.code(),
            StatusCode::kDataLoss);
  Put(&harness, Table::kTimers, KeyOf(job), value);
  EXPECT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  EXPECT_EQ(harness.engine().stats().ready, 0U);
}

}  // namespace
}  // namespace delayd::engine

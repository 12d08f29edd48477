// Names that clients make up for one job each do not stay for ever (P10).
#include <gmock/gmock.h>

#include "base/limits.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;
using storage::Table;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

EngineOptions Remembering(size_t empty_queues, Millis key_retention = Millis(0)) {
  return {.defaults = {.key_retention = key_retention}, .empty_queues_max = empty_queues};
}

JobSpec Of(std::string queue, std::string key = {}) {
  JobSpec spec = In(1h);
  spec.queue = std::move(queue);
  spec.key = std::move(key);
  return spec;
}

JobView EnqueueInto(EngineHarness* harness, const std::string& queue) {
  return harness->EnqueueOk(Of(queue));
}

void CancelOk(EngineHarness* harness, JobId id) {
  ASSERT_TRUE(harness->Call(Cancel{id}).status.ok());
}

// A job comes into it and goes.
void Use(EngineHarness* harness, const std::string& queue) {
  CancelOk(harness, EnqueueInto(harness, queue).id);
}

std::vector<std::string> Names(EngineHarness* harness) {
  std::vector<std::string> names;
  const Reply reply = harness->Call(ListQueues{});
  for (const QueueView& queue : std::get<QueueList>(reply.body).queues) {
    names.push_back(queue.name);
  }
  return names;
}

std::vector<std::string> StoredNames(EngineHarness* harness) {
  std::vector<std::string> names;
  const auto take = [&names](std::string_view name, std::string_view) {
    names.emplace_back(name);
    return true;
  };
  EXPECT_TRUE(harness->store().Scan(Table::kQueues, {}, {}, take).ok());
  return names;
}

QueueId NumberOf(EngineHarness* harness, const std::string& name) {
  std::string row;
  EXPECT_TRUE(harness->store().Get(Table::kQueues, name, &row).ok());
  return storage::DecodeQueueRecord(name, row)->id;
}

bool HasCounts(EngineHarness* harness, QueueId id) {
  std::string row;
  return harness->store().Get(Table::kMeta, storage::QueueCountsKey(id), &row).ok();
}

TEST(ForgottenQueuesTest, P10TheQueueThatHasBeenEmptyForLongestGoesWhenThereAreTooMany) {
  EngineHarness harness(Remembering(2));
  Use(&harness, "a");
  const QueueId a = NumberOf(&harness, "a");
  Use(&harness, "b");
  EXPECT_THAT(Names(&harness), ElementsAre("a", "b"));
  Use(&harness, "a");
  Use(&harness, "c");
  EXPECT_THAT(Names(&harness), UnorderedElementsAre("a", "c"));
  Use(&harness, "d");
  EXPECT_THAT(StoredNames(&harness), ElementsAre("c", "d"));
  EXPECT_FALSE(HasCounts(&harness, a));
}

TEST(ForgottenQueuesTest, QueuesWithJobsAreNotCountedAndStay) {
  EngineHarness harness(Remembering(1));
  for (const char* queue : {"a", "b", "c"}) {
    EnqueueInto(&harness, queue);
  }
  Use(&harness, "d");
  EXPECT_THAT(Names(&harness), ElementsAre("a", "b", "c", "d"));
  Use(&harness, "e");
  EXPECT_THAT(Names(&harness), UnorderedElementsAre("a", "b", "c", "e"));
}

TEST(ForgottenQueuesTest, AQueueIsUsedWhileItsJobsAreDeadOrAKeyIsKept) {
  EngineHarness harness(Remembering(0, 10min));
  JobSpec dead = Of("dead");
  dead.buried = true;
  const JobView job = harness.EnqueueOk(dead);
  const JobView keyed = harness.EnqueueOk(Of("keyed", "order:1"));
  CancelOk(&harness, keyed.id);
  Use(&harness, "used");
  EXPECT_THAT(Names(&harness), ElementsAre("dead", "keyed"));
  EXPECT_EQ(harness.ReasonOf(Show{keyed.id}), "");
  harness.Wait(11min);
  EXPECT_THAT(Names(&harness), ElementsAre("dead"));
  CancelOk(&harness, job.id);
  EXPECT_THAT(Names(&harness), IsEmpty());
}

TEST(ForgottenQueuesTest, APausedOneAndOneThatIsWaitedForStay) {
  EngineHarness harness(Remembering(0));
  ASSERT_TRUE(harness.Call(Pause{.queue = "paused", .create = true}).status.ok());
  const JobView job = EnqueueInto(&harness, "awaited");
  const RequestId lease = harness.Send(Lease{.queues = {"awaited"}, .wait = 60s});
  CancelOk(&harness, job.id);
  Use(&harness, "used");
  EXPECT_THAT(Names(&harness), ElementsAre("paused", "awaited"));
  harness.Wait(60s);
  EXPECT_TRUE(std::get<Leased>(harness.Take(lease).body).jobs.empty());
  ASSERT_TRUE(harness.Call(Resume{.queue = "paused"}).status.ok());
  Use(&harness, "used");
  EXPECT_THAT(Names(&harness), IsEmpty());
}

// The line of those to be served, and that of those that lag behind, would lead to a queue that is
// gone.
TEST(ForgottenQueuesTest, OneThatIsStillToBeServedOrLoadedStays) {
  EngineOptions options = Remembering(0);
  options.horizon = 1min;
  options.memory_jobs_max = 10;
  EngineHarness harness(options);
  const int jobs = 200;
  for (int i = 0; i < jobs; ++i) {
    JobSpec spec = Of("lagging", std::to_string(i));
    spec.due = DueAfter{Millis(i)};
    harness.EnqueueOk(std::move(spec));
  }
  harness.Turn();
  harness.Wait(1min);
  ASSERT_TRUE(harness.Call(Pause{.queue = "resumed", .create = true}).status.ok());
  const RequestId lease = harness.Send(Lease{.queues = {"resumed"}, .wait = 60s});
  harness.Send(Resume{.queue = "resumed"});
  harness.Send(Abandon{lease});
  for (int i = 0; i < jobs; ++i) {
    harness.Send(Cancel{KeyRef{"lagging", std::to_string(i)}});
  }
  harness.CommitAll();
  EXPECT_THAT(StoredNames(&harness), UnorderedElementsAre("lagging", "resumed"));
  harness.Turn();
  Use(&harness, "used");
  EXPECT_THAT(StoredNames(&harness), IsEmpty());
}

// Else whoever fills and empties it in turn would have a burst each time.
TEST(ForgottenQueuesTest, AQueueWhoseRateIsUsedUpStaysUntilItHasFilledUp) {
  EngineOptions options = Remembering(0);
  options.queues["slow"] = {.rate = {.count = 1, .per = 60s, .burst = 1}};
  EngineHarness harness(options);
  JobSpec now = Of("slow");
  now.due = DueAfter{Millis(0)};
  const auto work = [&] {
    harness.EnqueueOk(now);
    const auto leased = harness.LeaseNow(1, "slow");
    for (const JobView& job : leased) {
      EXPECT_TRUE(harness.Call(Ack{.token = *job.lease_token}).status.ok());
    }
    return leased.size();
  };
  EXPECT_EQ(work(), 1U);
  EXPECT_EQ(work(), 0U);
}

TEST(ForgottenQueuesTest, AForgottenQueueBeginsAnewWithAnotherNumber) {
  EngineHarness harness(Remembering(0));
  const JobView job = EnqueueInto(&harness, "a");
  const QueueId first = NumberOf(&harness, "a");
  CancelOk(&harness, job.id);
  EnqueueInto(&harness, "b");
  EXPECT_THAT(StoredNames(&harness), ElementsAre("b"));
  EXPECT_NE(NumberOf(&harness, "b"), first);
  harness.EnqueueOk(Of("a"));
  EXPECT_NE(NumberOf(&harness, "a"), first);
  const Reply reply = harness.Call(ListQueues{.queue = "a"});
  EXPECT_EQ(std::get<QueueList>(reply.body).queues.at(0).enqueued, 1U);
  harness.Restart();
  EXPECT_THAT(Names(&harness), UnorderedElementsAre("a", "b"));
  EnqueueInto(&harness, "c");
  EXPECT_EQ(NumberOf(&harness, "c"), first);
}

// Its last job has gone by the batch that forgets it.
TEST(ForgottenQueuesTest, P1ThatAQueueIsNotKnownIsToldWhenItsEndIsDurable) {
  EngineHarness harness(Remembering(0));
  const JobView job = harness.EnqueueOk(Of("a", "order:1"));
  harness.Send(Cancel{job.id});
  ASSERT_TRUE(harness.engine().Seal(harness.now()).has_value());
  const std::vector<RequestId> reads = {
      harness.Send(Show{KeyRef{"a", "order:1"}}),
      harness.Send(List{.queue = "a"}),
      harness.Send(Pause{.queue = "a"}),
  };
  for (const RequestId read : reads) {
    EXPECT_FALSE(harness.HasReply(read));
  }
  harness.engine().Committed(harness.engine().stats().commit_sequence + 1);
  for (const RequestId read : reads) {
    EXPECT_EQ(harness.Take(read).status.code(), StatusCode::kNotFound);
  }
}

TEST(ForgottenQueuesTest, P9ANumberIsGivenAgainWhenNoLogTellsOfTheQueueItNamed) {
  EngineHarness harness(Remembering(0));
  const JobView job = EnqueueInto(&harness, "a");
  const QueueId first = NumberOf(&harness, "a");
  CancelOk(&harness, job.id);
  JobSpec large = Of("large");
  large.payload.assign(limits::kQueueIdRestBytes / 64, 'p');
  for (int i = 0; i < 63; ++i) {
    CancelOk(&harness, harness.EnqueueOk(large).id);
  }
  EnqueueInto(&harness, "b");
  EXPECT_NE(NumberOf(&harness, "b"), first);
  EnqueueInto(&harness, "large");
  CancelOk(&harness, harness.EnqueueOk(large).id);
  EnqueueInto(&harness, "c");
  EXPECT_EQ(NumberOf(&harness, "c"), first);
}

TEST(ForgottenQueuesTest, TheNextStartForgetsWhatWasTooManyALittleInEachBatch) {
  EngineHarness harness;
  for (int i = 0; i < 200; ++i) {
    Use(&harness, "q" + std::to_string(i));
  }
  ASSERT_EQ(Names(&harness).size(), 200U);
  harness.RestartWith(Remembering(0));
  const size_t left = Names(&harness).size();
  EXPECT_GT(left, 100U);
  EXPECT_LT(left, 200U);
  for (int i = 0; i < 5; ++i) {
    Use(&harness, "used");
  }
  EXPECT_THAT(Names(&harness), IsEmpty());
}

// What an older program has written: of its finished jobs nothing is known.
TEST(ForgottenQueuesTest, AQueueWhoseFinishedJobsWereNotCountedStays) {
  EngineHarness harness(Remembering(0, 10min));
  const JobView job = harness.EnqueueOk(Of("old", "order:1"));
  CancelOk(&harness, job.id);
  const std::string key = storage::QueueCountsKey(NumberOf(&harness, "old"));
  storage::Batch batch;
  batch.Put(Table::kMeta, key, storage::EncodeQueueCounts(key, {.done = std::nullopt}));
  ASSERT_TRUE(harness.store().Commit(batch).ok());
  harness.Restart();
  harness.Wait(11min);
  Use(&harness, "old");
  Use(&harness, "used");
  EXPECT_THAT(Names(&harness), ElementsAre("old"));
}

}  // namespace
}  // namespace delayd::engine

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(BatchTest, P8AllOfABatchIsThereAfterOneCommit) {
  EngineHarness harness;
  Enqueue batch;
  for (int i = 0; i < 1000; ++i) {
    batch.jobs.push_back(In(Millis(1000), std::to_string(i)));
  }
  const RequestId request = harness.Send(std::move(batch));
  const uint64_t commits = harness.engine().stats().commits;
  ASSERT_TRUE(harness.CommitOne());
  EXPECT_EQ(harness.engine().stats().commits, commits + 1);
  EXPECT_TRUE(harness.HasReply(request));
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled, 1000U);
}

TEST(BatchTest, P8NothingOfABatchIsThereWhenOneJobIsRefused) {
  EngineHarness harness;
  harness.EnqueueOk(Keyed("taken", Millis(1000)));
  const Reply reply = harness.Call(
      Enqueue{{Keyed("a", Millis(1)), Keyed("b", Millis(1)), Keyed("taken", Millis(2))}});
  EXPECT_EQ(reply.status.reason(), "key_conflict");
  EXPECT_TRUE(reply.status.message().starts_with("job 3 of 3: ")) << reply.status.message();
  EXPECT_EQ(harness.engine().stats().scheduled, 1U);
  EXPECT_EQ(harness.ReasonOf(Show{KeyRef{"default", "a"}}), "not_found");
}

TEST(BatchTest, P8NothingOfABatchIsThereWhenTheCommitDidNotHappen) {
  EngineHarness harness;
  harness.Send(Enqueue{{In(Millis(1000)), In(Millis(1000))}});
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled, 0U);
}

TEST(BatchTest, LargePayloadsAreNotCopiedIntoTheBatch) {
  EngineHarness harness;
  const std::string payload(300'000, 'x');
  const RequestId request = harness.Send(Enqueue{{In(Millis(1000), payload)}});
  const auto sealed = harness.engine().Seal(harness.now());
  ASSERT_TRUE(sealed.has_value());
  EXPECT_GT(sealed->batch->bytes(), payload.size());
  EXPECT_LT(sealed->batch->buffer_bytes(), 2000U);
  ASSERT_TRUE(harness.store().Commit(*sealed->batch).ok());
  harness.engine().Committed(sealed->sequence);
  EXPECT_TRUE(harness.Take(request).status.ok());
}

TEST(BatchTest, P1CountsAreToldWhenTheyAreDurable) {
  for (const Command& command : {Command(GetStats{}), Command(Drain{.on = true})}) {
    EngineHarness harness;
    harness.Send(Enqueue{{In(Millis(1000))}});
    const RequestId request = harness.Send(command);
    EXPECT_FALSE(harness.HasReply(request));
    ASSERT_TRUE(harness.CommitOne());
    const Reply reply = harness.Take(request);
    EXPECT_EQ(std::get<Indirect<StatsView>>(reply.body)->scheduled, 1U);
  }
}

TEST(BatchTest, TwinsInsideABatchAreOneJob) {
  EngineHarness harness;
  const Reply reply = harness.Call(Enqueue{{Keyed("k"), In(Millis(5)), Keyed("k")}});
  ASSERT_TRUE(reply.status.ok());
  const auto& items = std::get<Enqueued>(reply.body).items;
  EXPECT_FALSE(items[0].existed);
  EXPECT_TRUE(items[2].existed);
  EXPECT_EQ(items[0].job.id, items[2].job.id);
  EXPECT_NE(items[0].job.id, items[1].job.id);
  JobSpec other = Keyed("n", Millis(0), "other");
  other.on_conflict = OnConflict::kReplace;  // that is about jobs that are there
  const Reply refused = harness.Call(Enqueue{{Keyed("n"), other}});
  EXPECT_EQ(refused.status.reason(), "key_conflict");
  EXPECT_EQ(refused.status.message(),
            "job 2 of 2: key n in queue default is that of job 1 too, with other content; name it "
            "once, or send them one by one");
}

TEST(BatchTest, ManyCommandsBecomeSeveralBoundedBatchesInOrder) {
  EngineHarness harness;
  std::vector<RequestId> requests;
  for (int i = 0; i < 3000; ++i) {
    requests.push_back(harness.Send(Enqueue{{In(Millis(1000))}}));
  }
  ASSERT_TRUE(harness.CommitOne());
  EXPECT_TRUE(harness.HasReply(requests[limits::kCommitOpsJobsMax - 1]));
  EXPECT_FALSE(harness.HasReply(requests[limits::kCommitOpsJobsMax]));
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled, limits::kCommitOpsJobsMax);
}

TEST(BatchTest, CountsAreExactInEveryBatchOfATurn) {
  EngineHarness harness;
  for (int i = 0; i < 3000; ++i) {
    harness.Send(Enqueue{{{.queue = i % 2 == 0 ? "a" : "b", .due = DueAfter{Millis(1000)}}}});
  }
  // Each prefix of the batches is what a crash may leave: the counts must agree with the timers in
  // each.
  for (int batch = 0; batch < 3; ++batch) {
    ASSERT_TRUE(harness.CommitOne());
    auto loaded = Engine::Load({.boot_id = kBootId}, harness.store(), harness.now());
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  }
}

}  // namespace
}  // namespace delayd::engine

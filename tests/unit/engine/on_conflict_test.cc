// Enqueue under a key that a job has, and changes that are meant for one state of a job only.
#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

JobSpec Ruled(OnConflict rule, Millis delay, std::string payload = "p") {
  JobSpec spec = Keyed("k", delay, std::move(payload));
  spec.on_conflict = rule;
  return spec;
}

Enqueued::Item EnqueueItem(EngineHarness* harness, JobSpec spec) {
  Reply reply = harness->Call(Enqueue{{std::move(spec)}});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return reply.status.ok() ? std::get<Enqueued>(reply.body).items.at(0) : Enqueued::Item{};
}

TEST(OnConflictTest, KeepAnswersWithTheLiveJobWhateverItsContent) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(5000), "first"));
  const Enqueued::Item item =
      EnqueueItem(&harness, Ruled(OnConflict::kKeep, Millis(9000), "second"));
  EXPECT_TRUE(item.existed);
  EXPECT_EQ(item.job.id, job.id);
  EXPECT_EQ(item.job.due, job.due);
  EXPECT_EQ(harness.ShowOk(job.id).payload, "first");
}

TEST(OnConflictTest, ReplaceGivesTheJobOtherContentAndDueTimeUnderItsId) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(
      Keyed("k", Millis(5000), std::string(limits::kInlinePayloadBytesMax + 1, 'x')));
  harness.Wait(Millis(4000));
  const Enqueued::Item item =
      EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(9000), "second"));
  EXPECT_TRUE(item.existed);
  EXPECT_EQ(item.job.id, job.id);
  harness.Restart();
  harness.Wait(Millis(8999));
  EXPECT_TRUE(harness.LeaseNow().empty()) << "P2: the old due time means nothing any more";
  harness.Wait(Millis(2));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].payload, "second");
  ASSERT_EQ(harness.ShowOk(job.id).history.size(), 1U);
  EXPECT_EQ(harness.ShowOk(job.id).history[0].kind, JobEvent::Kind::kReplaced);
}

TEST(OnConflictTest, ReplaceBySameContentDebouncesAndIsNoNews) {
  EngineHarness harness;
  JobId id{};
  for (int i = 0; i < 20; ++i) {
    id = EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(1000))).job.id;
    harness.Wait(Millis(900));
    EXPECT_TRUE(harness.LeaseNow().empty());
  }
  EXPECT_TRUE(harness.ShowOk(id).history.empty());
  harness.Wait(Millis(101));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  // The next event begins anew, although the key is still remembered.
  const Enqueued::Item next = EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(1000)));
  EXPECT_FALSE(next.existed);
  EXPECT_NE(next.job.id, id);
}

TEST(OnConflictTest, ReplaceIsRefusedWhileAWorkerHasTheJobAndKeepIsNot) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(0), "first"));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(0)), Ruled(OnConflict::kReplace, Millis(0))}}),
            "leased");
  EXPECT_EQ(harness.engine().stats().enqueued, 1U) << "P8: nothing of the batch";
  EXPECT_EQ(EnqueueItem(&harness, Ruled(OnConflict::kKeep, Millis(0))).job.state,
            JobState::kLeased);
  EXPECT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Cancel{job.id}), "finished");
}

TEST(OnConflictTest, ReplaceRevivesADeadJobWithAllItsAttempts) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(0), "first"));
  const auto leased = harness.LeaseNow();
  ASSERT_TRUE(
      harness.Call(Bury{.token = *leased.at(0).lease_token, .error = "no use"}).status.ok());
  const Enqueued::Item item =
      EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(1000), "new"));
  EXPECT_EQ(item.job.id, job.id);
  EXPECT_EQ(item.job.state, JobState::kScheduled);
  EXPECT_EQ(item.job.attempt, 0U);
  EXPECT_EQ(harness.engine().stats().dead, 0U);
  harness.Restart();
  harness.Wait(Millis(1001));
  EXPECT_EQ(harness.LeaseNow().at(0).payload, "new");
}

TEST(OnConflictTest, P7ARetryOfTheReplacedRequestIsAConflictAndOfTheNewOneTheJob) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(5000), "first"));
  EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(9000), "second"));
  EXPECT_EQ(harness.ReasonOf(Enqueue{{Keyed("k", Millis(5000), "first")}}), "key_conflict");
  EXPECT_EQ(EnqueueItem(&harness, Keyed("k", Millis(9000), "second")).job.id, job.id);
}

TEST(OnConflictTest, ARuleWithoutAKeyIsRefused) {
  EngineHarness harness;
  JobSpec spec = In(Millis(0));
  spec.on_conflict = OnConflict::kKeep;
  EXPECT_EQ(harness.ReasonOf(Enqueue{{spec}}), "invalid_on_conflict");
  JobSpec buried = Ruled(OnConflict::kReplace, Millis(0));
  buried.buried = true;
  EXPECT_EQ(harness.ReasonOf(Enqueue{{buried}}), "invalid_on_conflict");
}

TEST(OnConflictTest, TouchRepeatsTheDelayOfTheLastReplace) {
  EngineHarness harness;
  harness.EnqueueOk(Keyed("k", Millis(5000)));
  EnqueueItem(&harness, Ruled(OnConflict::kReplace, Millis(1000)));
  harness.Wait(Millis(500));
  ASSERT_TRUE(harness.Call(Touch{KeyRef{"default", "k"}}).status.ok());
  harness.Wait(Millis(999));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(2));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(OnConflictTest, AJobFromAnotherStoreBringsItsAttemptsErrorAndDelay) {
  EngineHarness harness;
  JobSpec spec{.due = DueAt{harness.now().wall}, .payload = "p"};
  spec.max_attempts = 3;
  spec.past = std::make_shared<JobPast>();
  spec.past->attempts = 2;
  spec.past->last_error = "gateway down";
  spec.touch_delay = Millis(30'000);
  const JobView job = harness.EnqueueOk(spec);
  EXPECT_EQ(job.attempt, 2U);
  EXPECT_EQ(job.last_error, "gateway down");
  EXPECT_EQ(job.delay, Millis(30'000));
  const auto leased = harness.LeaseNow();
  ASSERT_TRUE(harness.Call(Nack{.token = *leased.at(0).lease_token}).status.ok());
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kDead) << "it was the third";
}

TEST(OnConflictTest, AJobFromAnotherStoreBringsItsStory) {
  EngineHarness harness;
  const WallTime created = harness.now().wall - Millis(86'400'000);
  JobSpec spec = In(Millis(5000));
  spec.past = std::make_shared<JobPast>();
  spec.past->created = created;
  spec.past->timeouts = 1;
  spec.past->history = {{.kind = JobEvent::Kind::kLeaseExpired, .at = created, .who = "w"}};
  const JobId id = harness.EnqueueOk(spec).id;
  harness.Restart();
  const JobView job = harness.ShowOk(id);
  EXPECT_EQ(job.created, created);
  EXPECT_EQ(job.timeouts, 1U);
  EXPECT_EQ(job.history, spec.past->history);
  EXPECT_EQ(job.delay, Millis(5000)) << "what touch repeats is not told by when it was created";
  spec.past->created = harness.now().wall + Millis(1);
  EXPECT_EQ(harness.EnqueueOk(spec).created, harness.now().wall) << "another machine's clock";
}

TEST(OnConflictTest, AStoryThatThisStoreWouldNotHaveWrittenIsRefused) {
  EngineHarness harness;
  JobSpec spec = In(Millis(5000));
  spec.past = std::make_shared<JobPast>();
  spec.past->history.resize(limits::kJobEventsMax + 1);
  EXPECT_EQ(harness.Call(Enqueue{{spec}}).status.reason(), "invalid_history");
  spec.past->history.resize(1);
  spec.past->history[0].what.assign(limits::kEventErrorBytesMax + 1, 'e');
  EXPECT_EQ(harness.Call(Enqueue{{spec}}).status.reason(), "invalid_history");
  spec.past->history[0] = {.who = std::string(limits::kClientNameBytesMax + 1, 'w')};
  EXPECT_EQ(harness.Call(Enqueue{{spec}}).status.reason(), "invalid_history");
}

// At the end of its range a count would begin anew with the next hand-out.
TEST(OnConflictTest, FiguresOfAnotherStoreLeaveRoomToGrow) {
  EngineHarness harness;
  for (uint32_t JobPast::*figure : {&JobPast::attempts,
                                    static_cast<uint32_t JobPast::*>(&JobStory::timeouts),
                                    static_cast<uint32_t JobPast::*>(&JobStory::releases),
                                    static_cast<uint32_t JobPast::*>(&JobStory::buries),
                                    static_cast<uint32_t JobPast::*>(&JobStory::kicks)}) {
    JobSpec spec = In(Millis(5000));
    spec.past = std::make_shared<JobPast>();
    (*spec.past).*figure = limits::kPastFigureMax;
    EXPECT_TRUE(harness.Call(Enqueue{{spec}}).status.ok());
    (*spec.past).*figure = limits::kPastFigureMax + 1;
    EXPECT_EQ(harness.Call(Enqueue{{spec}}).status.reason(), "invalid_history");
  }
}

TEST(IfTagTest, AChangeIsMadeOnlyWhileTheJobIsAsItWasRead) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(5000)));
  const std::string tag = TagOf(harness.ShowOk(job.id));
  EXPECT_EQ(TagOf(harness.ShowOk(job.id)), tag);
  harness.Wait(Millis(100));
  EXPECT_EQ(TagOf(harness.ShowOk(job.id)), tag) << "time alone changes nothing";

  const Reply moved =
      harness.Call(Reschedule{.job = job.id, .due = DueAfter{Millis(1000)}, .if_tag = {"0", tag}});
  ASSERT_TRUE(moved.status.ok()) << moved.status.message();
  EXPECT_EQ(
      harness.ReasonOf(Reschedule{.job = job.id, .due = DueAfter{Millis(9000)}, .if_tag = {tag}}),
      "changed");
  EXPECT_EQ(harness.ReasonOf(Touch{.job = job.id, .if_tag = {tag}}), "changed");
  EXPECT_EQ(harness.ReasonOf(Cancel{.job = job.id, .if_tag = {tag}}), "changed");

  const std::string scheduled = TagOf(*std::get<Indirect<JobView>>(moved.body));
  harness.Wait(Millis(1001));
  EXPECT_EQ(harness.ReasonOf(Cancel{.job = job.id, .if_tag = {scheduled}}), "changed")
      << "it is ready by now";
  EXPECT_TRUE(
      harness.Call(Cancel{.job = job.id, .if_tag = {TagOf(harness.ShowOk(job.id))}}).status.ok());
}

TEST(OnConflictTest, P7TheStoryOfAJobFromAnotherStoreIsPartOfItsContent) {
  EngineHarness harness;
  JobSpec spec = Keyed("k", Millis(5000));
  spec.past = std::make_shared<JobPast>();
  const JobId id = harness.EnqueueOk(spec).id;
  spec.past = nullptr;
  EXPECT_EQ(harness.EnqueueOk(spec).id, id) << "a story that tells nothing is none";
  const auto expect_conflict = [&harness](const JobSpec& other) {
    EXPECT_EQ(harness.ReasonOf(Enqueue{{other}}), "key_conflict");
  };
  JobSpec tried = spec;
  tried.past = std::make_shared<JobPast>();
  tried.past->attempts = 1;
  expect_conflict(tried);
  tried.past->attempts = 0;
  tried.past->last_error = "gateway down";
  expect_conflict(tried);
  spec.touch_delay = Millis(1);
  expect_conflict(spec);
}

TEST(OnConflictTest, AJobFromAnotherStoreKeepsTheDelayItWasGivenAndTheErrorItDiedOf) {
  EngineHarness harness;
  JobSpec spec = In(Millis(5000));
  spec.past = std::make_shared<JobPast>();
  spec.past->created = harness.now().wall - Millis(1000);
  spec.touch_delay = Millis(30'000);
  EXPECT_EQ(harness.EnqueueOk(spec).delay, Millis(30'000));
  spec.touch_delay.reset();
  spec.due = DueAt{harness.now().wall + Millis(5000)};
  EXPECT_EQ(harness.EnqueueOk(spec).delay, std::nullopt) << "it never had one";
  spec.buried = true;
  EXPECT_EQ(harness.EnqueueOk(spec).last_error, "") << "it was buried without a word";
  spec.past->last_error = "gateway down";
  EXPECT_EQ(harness.EnqueueOk(spec).last_error, "gateway down");
  spec.past = nullptr;
  EXPECT_EQ(harness.EnqueueOk(spec).last_error, "enqueued as buried");
}

TEST(OnConflictTest, TwinsOfABatchWithDifferentRulesAreRefused) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(5000), "first"));
  const Reply reply = harness.Call(Enqueue{{Ruled(OnConflict::kKeep, Millis(9000), "second"),
                                            Ruled(OnConflict::kReplace, Millis(9000), "second")}});
  EXPECT_EQ(reply.status.reason(), "key_conflict");
  EXPECT_EQ(reply.status.message(),
            "job 2 of 2: key k in queue default is that of job 1 too, with another on_conflict; "
            "name it once, or send them one by one");
  EXPECT_EQ(harness.ShowOk(job.id).payload, "first");
}

}  // namespace
}  // namespace delayd::engine

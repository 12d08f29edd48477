#include <gmock/gmock.h>

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(CancelTest, P4CancelledJobsNeverFire) {
  EngineHarness harness;
  const JobView scheduled = harness.EnqueueOk(In(Millis(1000)));
  const JobView ready = harness.EnqueueOk(In(Millis(0)));
  for (const JobId id : {scheduled.id, ready.id}) {
    const Reply reply = harness.Call(Cancel{id});
    ASSERT_TRUE(reply.status.ok());
    EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->outcome, "cancelled");
  }
  harness.Wait(Millis(2000));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(CancelTest, P4AnswersAreDefinite) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k"));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(harness.ReasonOf(Cancel{job.id}), "leased");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "k"}}), "leased");
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "k"}}), "finished");
  EXPECT_EQ(harness.ReasonOf(Cancel{job.id}), "finished");
  EXPECT_EQ(harness.ReasonOf(Cancel{JobId{123456}}), "not_found");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "other"}}), "not_found");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"nowhere", "k"}}), "not_found");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"a b", "k"}}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "a\nb"}}), "invalid_key");
}

TEST(CancelTest, P4ManyAreTakenBackInOneCommitAndARefusedOneKeepsNoOther) {
  EngineHarness harness;
  const JobView leased = harness.EnqueueOk(In(Millis(0)));
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  const JobView keyed = harness.EnqueueOk(Keyed("k", Millis(1000)));
  const JobView plain = harness.EnqueueOk(In(Millis(1000)));
  const JobView far = harness.EnqueueOk(In(std::chrono::hours(100)));
  const Reply reply = harness.Call(
      CancelIds{{leased.id, keyed.id, plain.id, JobId{123456}, far.id, plain.id, keyed.id}});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  const auto& result = std::get<CancelledIds>(reply.body);
  EXPECT_EQ(result.cancelled, 3U);
  const std::pair<JobId, std::string_view> refused[] = {{leased.id, "leased"},
                                                        {JobId{123456}, "not_found"},
                                                        {plain.id, "not_found"},
                                                        {keyed.id, "finished"}};
  ASSERT_EQ(result.refused.size(), std::size(refused));
  for (size_t i = 0; i < std::size(refused); ++i) {
    const auto& [id, status] = result.refused[i];
    EXPECT_EQ(std::pair(id, status.reason()), refused[i]);
    EXPECT_EQ(status.details(), harness.Call(Cancel{id}).status.details());
  }
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled, 0U);
  EXPECT_EQ(harness.ReasonOf(CancelIds{}), "invalid_count");
  EXPECT_EQ(harness.ReasonOf(CancelIds{std::vector<JobId>(limits::kCancelIdsMax + 1)}),
            "invalid_count");
}

// The answer to the first one may have got lost.
TEST(CancelTest, P4ARepeatedCancelTellsWhoWon) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(1000)));
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  for (const JobRef& ref : {JobRef(job.id), JobRef(KeyRef{"default", "k"})}) {
    const Status again = harness.Call(Cancel{ref}).status;
    EXPECT_THAT(again.message(), testing::HasSubstr("was cancelled already at "));
    EXPECT_EQ(
        again.details(),
        (Status::Details{{"outcome", "cancelled"}, {"finished", FormatUtc(harness.now().wall)}}));
  }
}

// What a client that is refused would else have to ask for.
TEST(CancelTest, ALeasedJobTellsWhoHasItAndUntilWhen) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(0)));
  const Reply leased = harness.Call(Lease{.queues = {"default"}, .client = "worker-7"});
  const JobView& held = std::get<Leased>(leased.body).jobs.front();
  const Status::Details details = {{"lease_expires", FormatUtc(*held.lease_expires)},
                                   {"client", "worker-7"}};
  JobSpec replacement = Keyed("k", Millis(0));
  replacement.on_conflict = OnConflict::kReplace;
  replacement.payload = "other";
  const Command refused[] = {Cancel{job.id},
                             Touch{job.id},
                             Reschedule{.job = job.id, .priority = 1},
                             Kick{job.id},
                             LeaseJob{.job = job.id},
                             Enqueue{.jobs = {replacement}}};
  for (const Command& command : refused) {
    const Status status = harness.Call(command).status;
    EXPECT_EQ(status.reason(), "leased") << CommandName(command);
    EXPECT_EQ(status.details(), details) << CommandName(command);
  }
}

// Apache's mod_deflate has changed it ("-gzip"), or another proxy has made a weak one of it.
TEST(CancelTest, ATagThatIsNoneOfOursIsSaidToBe) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  const auto message = [&](std::vector<std::string> tags) {
    return harness.Call(Cancel{.job = job.id, .if_tag = std::move(tags)}).status.message();
  };
  EXPECT_THAT(message({TagOf(job) + "-gzip", ""}), testing::HasSubstr("no tag of delayd's"));
  EXPECT_THAT(message({"0123456789abcdef", ""}), testing::HasSubstr("has changed since"));
}

TEST(CancelTest, P4NotFoundWaitsForTheCancelItRestsOn) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  const RequestId first = harness.Send(Cancel{job.id});
  const RequestId second = harness.Send(Cancel{job.id});
  EXPECT_FALSE(harness.HasReply(first));
  EXPECT_FALSE(harness.HasReply(second));
  harness.CommitAll();
  EXPECT_TRUE(harness.Take(first).status.ok());
  EXPECT_EQ(harness.Take(second).status.reason(), "not_found");
}

TEST(CancelTest, EnqueueAndCancelInOneCommitLeaveNothing) {
  EngineHarness harness({.defaults = {.key_retention = Millis(0)}});
  const RequestId enqueue =
      harness.Send(Enqueue{{Keyed("k", Millis(1000), std::string(5000, 'x'))}});
  const RequestId cancel = harness.Send(Cancel{KeyRef{"default", "k"}});
  harness.CommitAll();
  EXPECT_TRUE(harness.Take(enqueue).status.ok());
  EXPECT_TRUE(harness.Take(cancel).status.ok());
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().scheduled, 0U);
  int rows = 0;
  for (const storage::Table table : {storage::Table::kTimers,
                                     storage::Table::kIndex,
                                     storage::Table::kByQueue,
                                     storage::Table::kBig}) {
    ASSERT_TRUE(harness.store()
                    .Scan(table,
                          std::string(1, '\0'),
                          {},
                          [&](std::string_view, std::string_view) {
                            ++rows;
                            return true;
                          })
                    .ok());
  }
  EXPECT_EQ(rows, 0);
}

TEST(RescheduleTest, MovesEarlierAndLater) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  ASSERT_TRUE(harness.Call(Reschedule{.job = job.id, .due = DueAfter{Millis(5000)}}).status.ok());
  harness.Wait(Millis(2000));
  EXPECT_TRUE(harness.LeaseNow().empty());
  ASSERT_TRUE(harness.Call(Reschedule{.job = job.id, .due = DueAfter{Millis(10)}}).status.ok());
  harness.Wait(Millis(11));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(RescheduleTest, ReadyJobsGoBackToWaiting) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  const Reply reply = harness.Call(Reschedule{.job = job.id, .due = DueAfter{Millis(1000)}});
  ASSERT_TRUE(reply.status.ok());
  EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->state, JobState::kScheduled);
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(1001));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(RescheduleTest, PriorityAloneKeepsTheDueTime) {
  EngineHarness harness;
  const JobView a = harness.EnqueueOk(In(Millis(0), "a"));
  harness.EnqueueOk(In(Millis(0), "b"));
  ASSERT_TRUE(harness.Call(Reschedule{.job = a.id, .priority = 5000}).status.ok());
  EXPECT_EQ(harness.ShowOk(a.id).due, a.due);
  const auto leased = harness.LeaseNow(2);
  ASSERT_EQ(leased.size(), 2U);
  EXPECT_EQ(leased[0].payload, "b");
}

TEST(RescheduleTest, RefusalsAreDefinite) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k"));
  EXPECT_EQ(harness.ReasonOf(Reschedule{.job = job.id}), "invalid_reschedule");
  EXPECT_EQ(harness.ReasonOf(Reschedule{.job = job.id, .due = DueAfter{Millis(-5)}}),
            "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(Reschedule{.job = JobId{9}, .due = DueAfter{}}), "not_found");
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(harness.ReasonOf(Reschedule{.job = job.id, .due = DueAfter{}}), "leased");
  ASSERT_TRUE(harness.Call(Bury{*leased[0].lease_token, "broken"}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Reschedule{.job = job.id, .due = DueAfter{}}), "dead");
}

TEST(RescheduleTest, ByKeyBeforeTheEnqueueIsCommitted) {
  EngineHarness harness;
  harness.Send(Enqueue{{Keyed("k", Millis(1000))}});
  const RequestId moved =
      harness.Send(Reschedule{.job = KeyRef{"default", "k"}, .due = DueAfter{Millis(9000)}});
  EXPECT_FALSE(harness.HasReply(moved));
  harness.CommitAll();
  ASSERT_TRUE(harness.Take(moved).status.ok());
  harness.Restart();
  harness.Wait(Millis(8000));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(1001));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(CancelTest, ABriefCancelHoldsItsConditionAndKeepsTheHistory) {
  EngineHarness harness({.defaults = {.history_retention = std::chrono::hours(1)}});
  const JobView job = harness.EnqueueOk(In(Millis(1000), "what it was about"));
  EXPECT_EQ(harness.ReasonOf(Cancel{.job = job.id, .if_tag = {"stale"}, .brief = true}), "changed");
  const Reply reply = harness.Call(Cancel{.job = job.id, .brief = true});
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_TRUE(std::holds_alternative<std::monostate>(reply.body));
  EXPECT_EQ(harness.ShowOk(job.id).payload, "what it was about");
}

}  // namespace
}  // namespace delayd::engine

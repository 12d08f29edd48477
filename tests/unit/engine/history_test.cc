// What is kept of finished jobs, for how long, and that it goes in its time.
#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

EngineOptions Keeping(Millis history, Millis key_retention = Millis(0)) {
  return {.defaults = {.key_retention = key_retention, .history_retention = history}};
}

JobView Worked(EngineHarness* harness, JobSpec spec) {
  const JobView job = harness->EnqueueOk(std::move(spec));
  Reply leased = harness->Call(Lease{.queues = {"default"}, .client = "worker-7"});
  auto& jobs = std::get<Leased>(leased.body).jobs;
  EXPECT_EQ(jobs.size(), 1U);
  EXPECT_TRUE(harness->Call(Ack{*jobs.at(0).lease_token}).status.ok());
  return job;
}

size_t RowsOf(EngineHarness* harness, storage::Table table) {
  size_t rows = 0;
  const auto count = [&rows](std::string_view, std::string_view) {
    ++rows;
    return true;
  };
  EXPECT_TRUE(harness->store().Scan(table, std::string(1, '\0'), {}, count).ok());
  return rows;
}

std::vector<JobView> Finished(EngineHarness* harness) {
  Reply reply = harness->Call(List{.state = JobState::kFinished});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return std::get<JobList>(reply.body).jobs;
}

TEST(HistoryTest, AFinishedJobIsShownByIdWithItsWholeStory) {
  EngineHarness harness(Keeping(kHour));
  const JobView job = harness.EnqueueOk(In(Millis(0), "what it was about"));
  auto leased = harness.LeaseNow();
  ASSERT_TRUE(
      harness.Call(Nack{.token = *leased.at(0).lease_token, .delay = Millis(0), .error = "busy"})
          .status.ok());
  Reply again = harness.Call(Lease{.queues = {"default"}, .client = "worker-7"});
  ASSERT_TRUE(harness.Call(Ack{*std::get<Leased>(again.body).jobs.at(0).lease_token}).status.ok());
  harness.Restart();

  const JobView shown = harness.ShowOk(job.id);
  EXPECT_EQ(shown.state, JobState::kFinished);
  EXPECT_EQ(shown.outcome, "acked");
  EXPECT_EQ(shown.attempt, 2U);
  EXPECT_EQ(shown.last_error, "busy");
  EXPECT_EQ(shown.payload, "what it was about");
  EXPECT_EQ(shown.created, job.created);
  EXPECT_EQ(shown.finished, harness.now().wall);
  ASSERT_EQ(shown.history.size(), 2U);
  EXPECT_EQ(shown.history[0].kind, JobEvent::Kind::kNacked);
  EXPECT_EQ(shown.history[0].what, "busy");
  EXPECT_EQ(shown.history[1].kind, JobEvent::Kind::kAcked);
  EXPECT_EQ(shown.history[1].who, "worker-7");
}

TEST(HistoryTest, ALongErrorIsCutBetweenCharactersSoThatItsStoryCanBeTakenElsewhere) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  std::string error;
  while (error.size() <= limits::kLastErrorBytesMax) {
    error += "\xe2\x82\xac";  // three bytes, which divide neither limit
  }
  ASSERT_TRUE(
      harness
          .Call(Nack{
              .token = *harness.LeaseNow().at(0).lease_token, .delay = Millis(0), .error = error})
          .status.ok());
  const JobView shown = harness.ShowOk(job.id);
  EXPECT_EQ(shown.last_error, error.substr(0, limits::kLastErrorBytesMax - 1));
  ASSERT_EQ(shown.history.size(), 1U);
  EXPECT_EQ(shown.history[0].what, error.substr(0, limits::kEventErrorBytesMax - 2));

  JobSpec moved = In(Millis(0));
  moved.past = std::make_shared<JobPast>();
  moved.past->last_error = error;
  const JobView other = harness.EnqueueOk(std::move(moved));
  EXPECT_EQ(other.last_error, shown.last_error);
}

TEST(HistoryTest, ACancelledJobIsKeptTooAndByItsKeyAfterTheKeyIsFree) {
  EngineHarness harness(Keeping(kHour, Millis(60'000)));
  const JobView job = harness.EnqueueOk(Keyed("order:1", Millis(5000), "old"));
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  harness.Wait(Millis(60'001));
  const Reply shown = harness.Call(Show{KeyRef{"default", "order:1"}});
  ASSERT_TRUE(shown.status.ok()) << shown.status.message();
  EXPECT_EQ(std::get<Indirect<JobView>>(shown.body)->outcome, "cancelled");
  EXPECT_EQ(std::get<Indirect<JobView>>(shown.body)->payload, "old");
  EXPECT_EQ(harness.ReasonOf(Cancel{KeyRef{"default", "order:1"}}), "finished");
  // P7 holds for the key's retention and not for that of the history.
  const JobView next = harness.EnqueueOk(Keyed("order:1", Millis(5000), "old"));
  EXPECT_NE(next.id, job.id);
  EXPECT_EQ(harness.ShowOk(job.id).outcome, "cancelled");
}

TEST(HistoryTest, WithoutAHistoryAKeyedJobIsASummaryAndAnotherIsForgotten) {
  EngineHarness harness(Keeping(Millis(0), kHour));
  const JobView keyed = Worked(&harness, Keyed("k"));
  const JobView other = Worked(&harness, In(Millis(0)));
  const JobView shown = harness.ShowOk(keyed.id);
  EXPECT_EQ(shown.outcome, "acked");
  EXPECT_TRUE(shown.is_summary());
  EXPECT_FALSE(shown.payload.has_value());
  EXPECT_EQ(harness.ReasonOf(Show{other.id}), "not_found");
}

TEST(HistoryTest, ABigPayloadGoesWithTheJob) {
  EngineHarness harness(Keeping(kHour));
  const JobView job =
      Worked(&harness, In(Millis(0), std::string(limits::kInlinePayloadBytesMax + 1, 'x')));
  const JobView shown = harness.ShowOk(job.id);
  EXPECT_EQ(shown.payload_bytes, limits::kInlinePayloadBytesMax + 1);
  EXPECT_FALSE(shown.payload.has_value());
  EXPECT_EQ(RowsOf(&harness, storage::Table::kBig), 0U);
}

TEST(HistoryTest, P10WhatWasKeptIsForgottenInItsTimeWithAllItsRows) {
  EngineHarness harness(Keeping(kHour, Millis(60'000)));
  Worked(&harness, Keyed("k"));
  const JobView plain = Worked(&harness, In(Millis(0)));
  EXPECT_EQ(Finished(&harness).size(), 2U);
  harness.Wait(kHour - Millis(1));
  EXPECT_EQ(Finished(&harness).size(), 2U);
  harness.Wait(Millis(1));
  EXPECT_TRUE(Finished(&harness).empty()) << "not listed, whether swept away yet or not";
  EXPECT_EQ(harness.ReasonOf(Show{plain.id}), "not_found");
  harness.Wait(Millis(2000));
  for (const storage::Table table :
       {storage::Table::kDone, storage::Table::kIndex, storage::Table::kKeys}) {
    EXPECT_EQ(RowsOf(&harness, table), 0U);
  }
  EXPECT_FALSE(harness.UntilNextEvent().has_value());
}

TEST(HistoryTest, AMassCancelWithAStaleCursorLeavesFinishedJobsAlone) {
  EngineHarness harness(Keeping(kHour));
  const JobView job = harness.EnqueueOk(In(kHour));
  const RequestId first = harness.Send(Cancel{job.id});
  // The row is still there for a scan; the job is finished with the commit under way.
  const RequestId second =
      harness.Send(ChangeMany{.action = ChangeMany::Action::kCancel,
                              .filter = {.state = std::nullopt, .due_after = job.created}});
  harness.CommitAll();
  EXPECT_TRUE(harness.Take(first).status.ok());
  const Reply reply = harness.Take(second);
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  EXPECT_EQ(std::get<ChangedMany>(reply.body).matched, 0U);
  EXPECT_EQ(harness.engine().stats().cancelled, 1U);
}

TEST(HistoryTest, P10ManyAreForgottenInBoundedSteps) {
  EngineHarness harness(Keeping(kHour));
  const size_t count = limits::kTrimRowsMax + 10;
  for (size_t i = 0; i < count; ++i) {
    harness.Send(Enqueue{{In(kHour)}});
  }
  harness.CommitAll();
  ASSERT_TRUE(harness.Call(ChangeMany{.filter = {.queue = "default"}, .limit = 1000}).status.ok());
  ASSERT_TRUE(harness.Call(ChangeMany{.filter = {.queue = "default"}, .limit = 1000}).status.ok());
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), count);
  harness.Wait(kHour + Millis(limits::kTrimIntervalMsMin));
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), 10U);
  harness.Wait(Millis(limits::kTrimPauseMs));
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), 0U);
}

TEST(HistoryTest, AKeyOfAClockThatWasAheadIsKeptForItsRetentionFromWhereItIsPutRight) {
  for (const bool restarts : {false, true}) {
    EngineHarness harness(Keeping(Millis(0), 10min));
    const JobSpec spec = {.due = DueAfter{}, .key = "order"};
    harness.clock().StepWall(20 * 24 * kHour);
    const JobView job = Worked(&harness, spec);
    harness.clock().StepWall(-20 * 24 * kHour);
    if (restarts) {
      harness.Restart();
    }
    EXPECT_EQ(harness.EnqueueOk(spec).id, job.id);
    harness.Wait(9min);
    EXPECT_EQ(harness.EnqueueOk(spec).id, job.id);
    harness.Wait(1min);
    EXPECT_NE(harness.EnqueueOk(spec).id, job.id);
  }
}

TEST(HistoryTest, AKeyIsKeptForItsWholeRetentionWhereItsRowStandsAtTheMarkOfAClockThatWasAhead) {
  EngineHarness harness(Keeping(Millis(0), 10min));
  harness.clock().StepWall(20 * 24 * kHour);
  Worked(&harness, {.due = DueAfter{}, .key = "first"});
  harness.Wait(1h);
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), 0U);
  harness.clock().StepWall(-20 * 24 * kHour);
  harness.Wait(1h);
  const JobSpec spec = {.due = DueAfter{}, .key = "order"};
  const JobView job = Worked(&harness, spec);
  harness.Wait(9min);
  EXPECT_EQ(harness.EnqueueOk(spec).id, job.id);
  harness.Wait(1min);
  EXPECT_NE(harness.EnqueueOk(spec).id, job.id);
}

// A clock that was twenty days ahead for a moment: what finished then was forgotten by it.
TEST(HistoryTest, AClockThatWasAheadAndIsPutRightMakesNothingKeptForLonger) {
  EngineHarness harness(Keeping(10min, 1s));
  harness.clock().StepWall(20 * 24 * kHour);
  Worked(&harness, {.due = DueAfter{}, .key = "first"});
  harness.Wait(1h);
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), 0U);
  harness.clock().StepWall(-20 * 24 * kHour);
  const JobView job = Worked(&harness, {.due = DueAfter{}, .key = "order"});
  EXPECT_EQ(Finished(&harness).size(), 1U);
  harness.Wait(1s);
  EXPECT_NE(harness.EnqueueOk({.due = DueAfter{1h}, .key = "order"}).id, job.id);
  harness.Wait(10min);
  EXPECT_TRUE(Finished(&harness).empty());
  EXPECT_EQ(harness.Call(Show{job.id}).status.code(), StatusCode::kNotFound);
  harness.Wait(20 * 24 * kHour);
  EXPECT_EQ(RowsOf(&harness, storage::Table::kDone), 0U) << "its row goes by its place";
}

}  // namespace
}  // namespace delayd::engine

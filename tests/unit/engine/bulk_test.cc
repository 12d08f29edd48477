#include <set>

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

struct Total {
  uint64_t steps = 0;
  uint64_t matched = 0;
  uint64_t changed = 0;
};

// Follows the cursors to the end.
Total RunAll(EngineHarness* harness, ChangeMany command) {
  Total total;
  do {
    Reply reply = harness->Call(command);
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    if (!reply.status.ok()) {
      break;
    }
    const auto& done = std::get<ChangedMany>(reply.body);
    total.matched += done.matched;
    total.changed += done.changed;
    command.cursor = done.next_cursor;
  } while (!command.cursor.empty() && ++total.steps < 1000);
  return total;
}

size_t CountListed(EngineHarness* harness, List command) {
  command.limit = 1000;
  return std::get<JobList>(harness->Call(command).body).jobs.size();
}

void EnqueueMany(EngineHarness* harness, const std::string& queue, int count, Millis first) {
  Enqueue batch;
  for (int i = 0; i < count; ++i) {
    batch.jobs.push_back(
        {.queue = queue, .due = DueAfter{first + Millis(i)}, .key = "order:" + std::to_string(i)});
  }
  ASSERT_TRUE(harness->Call(std::move(batch)).status.ok());
}

TEST(ChangeManyTest, P4CancelsWhatFitsTheFilterAndNothingElse) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 300, Millis(10'000));
  EnqueueMany(&harness, "b", 50, Millis(10'000));
  const Total total = RunAll(&harness, {.filter = {.queue = "a"}, .limit = 100});
  EXPECT_EQ(total.changed, 300U);
  EXPECT_EQ(total.matched, 300U);
  EXPECT_EQ(CountListed(&harness, {.queue = "a"}), 0U);
  EXPECT_EQ(CountListed(&harness, {.queue = "b"}), 50U);
  harness.Wait(Millis(60'000));
  EXPECT_TRUE(harness.LeaseNow(10, "a").empty());
}

TEST(ChangeManyTest, ReadyJobsAreFoundWithoutALookAtAllThatAreNotDue) {
  for (const std::optional<std::string>& queue : {std::optional<std::string>(), {"a"}}) {
    EngineHarness harness;
    EnqueueMany(&harness, "a", limits::kBulkRowsMax, Millis(10'000));
    for (int i = 0; i < 3; ++i) {
      harness.EnqueueOk(ForQueue("a", Millis(0)));
    }
    const Total total = RunAll(&harness, {.filter = {.queue = queue, .state = JobState::kReady}});
    EXPECT_EQ(total.changed, 3U);
    EXPECT_EQ(total.steps, 0U) << "one request";
    EXPECT_EQ(CountListed(&harness, {.queue = "a"}), limits::kBulkRowsMax);
  }
}

TEST(ChangeManyTest, FiltersByStateKeyPrefixAndTrueDueTime) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 20, Millis(10'000));
  EXPECT_EQ(RunAll(&harness, {.filter = {.key_prefix = "order:1"}, .dry_run = true}).matched, 11U);
  EXPECT_EQ(RunAll(&harness,
                   {.filter = {.due_before = harness.now().wall + Millis(10'005)}, .dry_run = true})
                .matched,
            5U);
  EXPECT_EQ(RunAll(&harness,
                   {.filter = {.due_after = harness.now().wall + Millis(10'005)}, .dry_run = true})
                .matched,
            15U);
  EXPECT_EQ(RunAll(&harness, {.filter = {.state = JobState::kReady}, .dry_run = true}).matched, 0U);
  EXPECT_EQ(CountListed(&harness, {.queue = "a"}), 20U);
}

TEST(ChangeManyTest, LeasedJobsMatchAndAreLeftToTheirWorkers) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 3, Millis(0));
  harness.Wait(Millis(10));
  ASSERT_EQ(harness.LeaseNow(1, "a").size(), 1U);
  const Total total = RunAll(&harness, {.filter = {.queue = "a"}});
  EXPECT_EQ(total.matched, 3U);
  EXPECT_EQ(total.changed, 2U);
}

TEST(ChangeManyTest, P8AStepIsOneCommit) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 500, Millis(10'000));
  harness.Send(ChangeMany{.filter = {.queue = "a"}, .limit = 500});
  const auto sealed = harness.engine().Seal(harness.now());
  ASSERT_TRUE(sealed.has_value());
  EXPECT_FALSE(harness.engine().Seal(harness.now()).has_value());
  harness.Restart();  // the commit never happened
  EXPECT_EQ(CountListed(&harness, {.queue = "a"}), 500U);
}

TEST(ChangeManyTest, TheSameFilterDoesWhatACrashLeft) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 300, Millis(10'000));
  EXPECT_EQ(
      std::get<ChangedMany>(harness.Call(ChangeMany{.filter = {.queue = "a"}, .limit = 100}).body)
          .changed,
      100U);
  harness.Restart();
  EXPECT_EQ(RunAll(&harness, {.filter = {.queue = "a"}, .limit = 100}).changed, 200U);
}

TEST(ChangeManyTest, AMoveAheadOfTheScanEndsAndGivesAllOneDueTime) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 200, Millis(10'000));
  const WallTime due = harness.now().wall + Millis(10'100);
  ChangeMany command{.action = ChangeMany::Action::kReschedule,
                     .filter = {.queue = "a"},
                     .due = DueAfter{Millis(10'100)},
                     .limit = 7};
  Total total;
  do {
    const auto done = std::get<ChangedMany>(harness.Call(command).body);
    total.changed += done.changed;
    command.cursor = done.next_cursor;
    harness.Wait(Millis(3));  // time goes on between the steps
  } while (!command.cursor.empty() && ++total.steps < 1000);
  EXPECT_EQ(total.changed, 199U);  // one was due then already
  const Reply reply = harness.Call(List{.queue = "a", .limit = 1000});
  const std::vector<JobView>& jobs = std::get<JobList>(reply.body).jobs;
  EXPECT_EQ(jobs.size(), 200U);
  for (const JobView& job : jobs) {
    EXPECT_EQ(job.due, due);
  }
}

TEST(ChangeManyTest, AMoveOfOverdueJobsToNowEnds) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 50, Millis(0));
  harness.Wait(Millis(1000));
  const Total total = RunAll(&harness,
                             {.action = ChangeMany::Action::kReschedule,
                              .filter = {.queue = "a"},
                              .due = DueAfter{},
                              .limit = 5});
  EXPECT_EQ(total.changed, 50U);
}

TEST(ChangeManyTest, DeadJobsAreCancelledByQueue) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 3, Millis(0));
  harness.Wait(Millis(10));
  for (const JobView& job : harness.LeaseNow(3, "a")) {
    ASSERT_TRUE(harness.Call(Bury{*job.lease_token, "bad"}).status.ok());
    harness.Wait(Millis(1));
  }
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.filter = {.state = JobState::kDead}}), "queue_required");
  ChangeMany cancel{
      .filter = {.queue = "a", .state = JobState::kDead}, .dry_run = true, .limit = 1};
  EXPECT_EQ(RunAll(&harness, cancel).matched, 3U);
  cancel.dry_run = false;
  EXPECT_EQ(RunAll(&harness, cancel).changed, 3U);  // those too which a step has passed over
}

TEST(ChangeManyTest, KicksDeadJobsOrScheduledOnes) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 3, Millis(0));
  harness.Wait(Millis(10));
  for (const JobView& job : harness.LeaseNow(3, "a")) {
    ASSERT_TRUE(harness.Call(Bury{*job.lease_token, "bad"}).status.ok());
  }
  EnqueueMany(&harness, "b", 3, Millis(60'000));
  ChangeMany command{.action = ChangeMany::Action::kKick, .filter = {.queue = "a"}, .limit = 2};
  EXPECT_EQ(harness.ReasonOf(command), "invalid_state");
  command.filter.state = JobState::kDead;
  EXPECT_EQ(RunAll(&harness, command).changed, 3U);
  EXPECT_EQ(harness.LeaseNow(9, "a").size(), 3U);
  command.filter = {.queue = "b", .state = JobState::kScheduled};
  EXPECT_EQ(RunAll(&harness, command).changed, 3U);
  EXPECT_EQ(harness.LeaseNow(9, "b").size(), 3U);
}

TEST(ChangeManyTest, RefusesWhatWouldMeanEverythingOrNothing) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 1, Millis(1000));
  EXPECT_EQ(harness.ReasonOf(ChangeMany{}), "empty_filter");
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.filter = {.state = JobState::kFinished}}),
            "invalid_state");
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.filter = {.queue = "nowhere"}}), "not_found");
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.filter = {.queue = "a"}, .limit = 1001}), "invalid_limit");
  EXPECT_EQ(harness.ReasonOf(
                ChangeMany{.action = ChangeMany::Action::kReschedule, .filter = {.queue = "a"}}),
            "invalid_reschedule");
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.action = ChangeMany::Action::kReschedule,
                                        .filter = {.queue = "a"},
                                        .due = DueAfter{Millis(-1)}}),
            "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(ChangeMany{.action = ChangeMany::Action::kReschedule,
                                        .filter = {.queue = "a", .state = JobState::kDead},
                                        .due = DueAfter{Millis(0)}}),
            "invalid_state");
  for (const char* cursor :
       {"zz", "1-2@", "1-2@-5", "1-2@zz", "@5", "1-2@5x", "1-2@ffffffffffff"}) {
    EXPECT_EQ(harness.ReasonOf(ChangeMany{.filter = {.queue = "a"}, .cursor = cursor}),
              "invalid_cursor")
        << cursor;
  }
}

// The cursor of a move names the due time that it gives: it leads nowhere in a change of priority.
TEST(ChangeManyTest, TheCursorOfAMoveIsRefusedWhereNoneIsAsked) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 3, Millis(60'000));
  ChangeMany command{.action = ChangeMany::Action::kReschedule,
                     .filter = {.queue = "a"},
                     .due = DueAfter{Millis(1000)},
                     .limit = 1};
  const Reply moved = harness.Call(command);
  command.cursor = std::get<ChangedMany>(moved.body).next_cursor;
  ASSERT_NE(command.cursor.find('@'), std::string::npos);
  command.due.reset();
  command.priority = 7;
  EXPECT_EQ(harness.ReasonOf(command), "invalid_cursor");
  command.priority = limits::kPriorityDefault;  // as they are: nothing else to be done
  EXPECT_EQ(harness.ReasonOf(command), "invalid_cursor");
  command.action = ChangeMany::Action::kCancel;
  EXPECT_EQ(harness.ReasonOf(command), "invalid_cursor");
  EXPECT_EQ(CountListed(&harness, {.queue = "a"}), 3U);
  command.cursor = command.cursor.substr(0, command.cursor.find('@'));
  EXPECT_EQ(RunAll(&harness, command).changed, 2U);
}

TEST(ChangeManyTest, AStepLooksAtABoundedNumberOfRowsWhetherTheyMatchOrNot) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 1000, Millis(10'000));
  harness.EnqueueOk({.queue = "a", .due = DueAfter{Millis(90'000)}, .key = "last"});
  const Reply first = harness.Call(ChangeMany{.filter = {.queue = "a", .key_prefix = "last"}});
  EXPECT_EQ(std::get<ChangedMany>(first.body).matched, 0U);
  EXPECT_FALSE(std::get<ChangedMany>(first.body).next_cursor.empty());
  EXPECT_EQ(RunAll(&harness, {.filter = {.queue = "a", .key_prefix = "last"}}).changed, 1U);
  EnqueueMany(&harness, "b", 1000, Millis(10'000));
  harness.EnqueueOk({.queue = "b", .due = DueAfter{Millis(90'000)}});
  EXPECT_EQ(RunAll(&harness, {.filter = {.queue = "b"}, .limit = 1000}).changed, 1001U);
  JobSpec dead{.queue = "c"};
  dead.buried = true;
  harness.Send(Enqueue{std::vector<JobSpec>(1000, dead)});
  harness.EnqueueOk(dead);
  const JobFilter filter{.queue = "c", .state = JobState::kDead};
  EXPECT_EQ(RunAll(&harness, {.filter = filter, .limit = 1000}).changed, 1001U);
}

// The wall clock was set ahead: by it they are due, and still they wait.
TEST(ChangeManyTest, KicksWhatWaitsOnTheBootClockWhateverTheWallClockSays) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 3, Millis(60'000));
  harness.clock().StepWall(std::chrono::hours(1));
  harness.Turn();
  EXPECT_TRUE(harness.LeaseNow(9, "a").empty());
  const ChangeMany kick{.action = ChangeMany::Action::kKick,
                        .filter = {.queue = "a", .state = JobState::kScheduled}};
  EXPECT_EQ(RunAll(&harness, kick).changed, 3U);
  EXPECT_EQ(harness.LeaseNow(9, "a").size(), 3U);
}

// On disk, behind a backlog, a kicked job is shown as scheduled until the turn that could fire it.
TEST(ChangeManyTest, WhatOneStepHasKickedTheNextDoesNotKickAgain) {
  EngineHarness harness({.horizon = Millis(60'000), .memory_jobs_max = 10});
  for (int i = 0; i < 100; ++i) {
    harness.EnqueueOk({.queue = "a"});
  }
  harness.Wait(Millis(1000));
  EnqueueMany(&harness, "a", 3, Millis(600'000));
  harness.clock().Advance(Millis(5));
  const ChangeMany kick{.action = ChangeMany::Action::kKick,
                        .filter = {.queue = "a", .state = JobState::kScheduled}};
  const RequestId first = harness.Send(kick);
  harness.CommitAll();
  const RequestId second = harness.Send(kick);
  harness.CommitAll();
  EXPECT_EQ(std::get<ChangedMany>(harness.Take(first).body).changed, 3U);
  EXPECT_EQ(std::get<ChangedMany>(harness.Take(second).body).changed, 0U);
}

// Workers that fail as fast as they are given jobs: between two steps all that is ready has died.
Total KickWhileAllDies(EngineHarness* harness, ChangeMany command, Millis clock_step) {
  Total total;
  do {
    const auto done = std::get<ChangedMany>(harness->Call(command).body);
    total.changed += done.changed;
    command.cursor = done.next_cursor;
    harness->clock().StepWall(total.steps == 2 ? clock_step : Millis(0));
    harness->Wait(Millis(1));
    for (const JobView& job : harness->LeaseNow(100, "a")) {
      EXPECT_TRUE(harness->Call(Bury{*job.lease_token, "bad"}).status.ok());
    }
    harness->Wait(Millis(1));
  } while (!command.cursor.empty() && ++total.steps < 100);
  return total;
}

void EnqueueBuried(EngineHarness* harness, size_t count) {
  JobSpec dead{.queue = "a"};
  dead.buried = true;
  ASSERT_TRUE(harness->Call(Enqueue{std::vector<JobSpec>(count, dead)}).status.ok());
  harness->Wait(Millis(1));
}

const ChangeMany kKickTheDead{.action = ChangeMany::Action::kKick,
                              .filter = {.queue = "a", .state = JobState::kDead},
                              .limit = 7};

TEST(ChangeManyTest, AKickPassesOverWhatDiedSinceItBegan) {
  EngineHarness harness;
  EnqueueBuried(&harness, 50);
  EXPECT_EQ(KickWhileAllDies(&harness, kKickTheDead, Millis(0)).changed, 50U);
  EXPECT_EQ(RunAll(&harness, kKickTheDead).changed, 50U);  // of one that begins now they are
}

TEST(ChangeManyTest, AKickTakesWhatDiedByAClockThatWasAhead) {
  EngineHarness harness;
  harness.clock().StepWall(kHour);
  EnqueueBuried(&harness, 10);
  harness.clock().StepWall(-kHour);
  EnqueueBuried(&harness, 40);
  ChangeMany count = kKickTheDead;
  count.dry_run = true;
  EXPECT_EQ(RunAll(&harness, count).matched, 50U);
  EXPECT_EQ(KickWhileAllDies(&harness, kKickTheDead, Millis(0)).changed, 50U);
}

// What died before a step knew that the clock was set back is kicked once more.
TEST(ChangeManyTest, AKickDuringWhichTheClockIsSetBackEnds) {
  EngineHarness harness;
  EnqueueBuried(&harness, 50);
  harness.Wait(2 * kHour);
  EXPECT_EQ(KickWhileAllDies(&harness, kKickTheDead, -kHour).changed, 50U + 21);
  EXPECT_EQ(CountListed(&harness, {.queue = "a", .state = JobState::kDead}), 50U);
  EXPECT_EQ(RunAll(&harness, kKickTheDead).changed, 50U);
}

TEST(ChangeManyTest, AKickOfScheduledJobsPassesOverThoseThatItHasKicked) {
  EngineHarness harness;
  EnqueueMany(&harness, "a", 50, Millis(60'000));
  ChangeMany kick{.action = ChangeMany::Action::kKick,
                  .filter = {.queue = "a", .state = JobState::kScheduled},
                  .limit = 7};
  Total total;
  do {
    const auto done = std::get<ChangedMany>(harness.Call(kick).body);
    total.changed += done.changed;
    kick.cursor = done.next_cursor;
    for (const JobView& job : harness.LeaseNow(100, "a")) {
      EXPECT_TRUE(
          harness.Call(Nack{.token = *job.lease_token, .delay = kHour, .error = "no"}).status.ok());
    }
    harness.Wait(Millis(1));
  } while (!kick.cursor.empty() && ++total.steps < 100);
  EXPECT_EQ(total.changed, 50U);
  EXPECT_EQ(RunAll(&harness, kick).changed, 50U);
}

TEST(ChangeManyTest, TheCursorOfAKickLeadsNowhereElse) {
  EngineHarness harness;
  EnqueueBuried(&harness, 3);
  ChangeMany command = kKickTheDead;
  command.limit = 1;
  command.cursor = std::get<ChangedMany>(harness.Call(command).body).next_cursor;
  command.action = ChangeMany::Action::kCancel;
  EXPECT_EQ(harness.ReasonOf(command), "invalid_cursor");
}

}  // namespace
}  // namespace delayd::engine

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(LeaseTest, ComesWithTokenAttemptAndLateness) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{Millis(1000)}, .payload = "x", .lease = Millis(7000)});
  harness.Wait(Millis(1021));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].state, JobState::kLeased);
  EXPECT_EQ(leased[0].attempt, 1U);
  EXPECT_EQ(leased[0].lateness, Millis(20));
  EXPECT_EQ(leased[0].lease_expires, harness.now().wall + Millis(7000));
  EXPECT_TRUE(leased[0].lease_token.has_value());
}

// The clocks are read rounded down, so that their distance wavers by a millisecond.
TEST(LeaseTest, ItsEndIsShownAlikeWhileNobodySetsTheClock) {
  EngineHarness harness;
  const JobId id = harness.EnqueueOk({.due = DueAfter{Millis(0)}, .lease = Millis(7000)}).id;
  harness.Wait(Millis(1));
  const WallTime end = harness.LeaseNow().at(0).lease_expires.value();
  for (const Millis waver : {Millis(1), Millis(-2), Millis(1)}) {
    harness.clock().StepWall(waver);
    harness.Wait(Millis(100));
    EXPECT_EQ(harness.ShowOk(id).lease_expires, end);
  }
  harness.clock().StepWall(kHour);
  EXPECT_EQ(harness.ShowOk(id).lease_expires, end + kHour);
  EXPECT_EQ(harness.ShowOk(id).time_left, Millis(6700));
}

TEST(LeaseTest, OrderIsPriorityThenDueThenId) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{Millis(20)}, .payload = "late"});
  harness.EnqueueOk({.due = DueAfter{Millis(10)}, .payload = "early"});
  harness.EnqueueOk({.due = DueAfter{Millis(10)}, .payload = "early2"});
  harness.EnqueueOk({.due = DueAfter{Millis(30)}, .payload = "urgent", .priority = 1});
  harness.Wait(Millis(100));
  std::vector<std::string> order;
  for (const JobView& job : harness.LeaseNow(10)) {
    order.push_back(*job.payload);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"urgent", "early", "early2", "late"}));
}

TEST(LeaseTest, P5NobodyElseGetsALeasedJob) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(1000)});
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.Wait(Millis(999));
  EXPECT_TRUE(harness.LeaseNow().empty());
}

TEST(LeaseTest, P5AnEndedLeaseMeansAnotherAttempt) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(1000)});
  const auto first = harness.LeaseNow();
  ASSERT_EQ(first.size(), 1U);
  harness.Wait(Millis(1000));
  const auto second = harness.LeaseNow();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].attempt, 2U);
  EXPECT_EQ(second[0].last_error, "lease expired before an ack");
  EXPECT_NE(second[0].lease_token, first[0].lease_token);
}

TEST(LeaseTest, P5TheNextHandOutWaitsForTheCountedAttempt) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(1000)});
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.clock().Advance(Millis(1000));
  harness.engine().Advance(harness.now());
  const RequestId lease = harness.Send(Lease{.queues = {"default"}});
  EXPECT_FALSE(harness.HasReply(lease));
  harness.CommitAll();
  EXPECT_TRUE(harness.HasReply(lease));
}

TEST(LeaseTest, P6StaleTokensAreRefusedAndChangeNothing) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(1000)});
  const LeaseToken stale = *harness.LeaseNow().at(0).lease_token;
  harness.Wait(Millis(1000));
  const LeaseToken live = *harness.LeaseNow().at(0).lease_token;
  EXPECT_EQ(harness.ReasonOf(Ack{stale}), "lease_lost");
  EXPECT_EQ(harness.ReasonOf(Nack{.token = stale}), "lease_lost");
  EXPECT_EQ(harness.ReasonOf(Bury{stale, ""}), "lease_lost");
  EXPECT_EQ(harness.ReasonOf(Extend{.token = stale}), "lease_lost");
  EXPECT_TRUE(harness.Call(Ack{live}).status.ok());
  EXPECT_EQ(harness.ReasonOf(Ack{live}), "lease_lost");
}

TEST(LeaseTest, P6TokensOfAnEarlierRunAreStale) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  const LeaseToken old = *harness.LeaseNow().at(0).lease_token;
  harness.Restart();
  const LeaseToken now = *harness.LeaseNow().at(0).lease_token;
  EXPECT_EQ(now.job, old.job);
  EXPECT_EQ(harness.ReasonOf(Ack{old}), "lease_lost");
  EXPECT_TRUE(harness.Call(Ack{now}).status.ok());
}

TEST(LeaseTest, P6ManyLeasesEndInOneCommitAndOneThatIsOverKeepsNoOther) {
  EngineHarness harness;
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(Millis(0)));
  }
  const auto leased = harness.LeaseNow(3);
  ASSERT_EQ(leased.size(), 3U);
  ASSERT_TRUE(harness.Call(Ack{*leased[1].lease_token}).status.ok());
  AckMany command;
  for (const JobView& job : leased) {
    command.tokens.push_back(*job.lease_token);
  }
  command.tokens.push_back(*leased[0].lease_token);  // twice
  const Reply reply = harness.Call(command);
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  const auto& acked = std::get<AckedMany>(reply.body);
  EXPECT_EQ(acked.acked, 2U);
  EXPECT_EQ(acked.lost, (std::vector<LeaseToken>{*leased[1].lease_token, *leased[0].lease_token}));
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow(10).empty());
  EXPECT_EQ(harness.ReasonOf(AckMany{}), "invalid_count");
  EXPECT_EQ(harness.ReasonOf(AckMany{std::vector<LeaseToken>(limits::kLeaseCountMax + 1)}),
            "invalid_count");
}

TEST(LeaseTest, P3AckedJobsNeverComeBack) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
  harness.Wait(Millis(1'000'000));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
  EXPECT_EQ(harness.ReasonOf(Show{job.id}), "not_found");
}

TEST(LeaseTest, P3AnUncommittedAckIsAnAckThatDidNotHappen) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  const RequestId ack = harness.Send(Ack{*harness.LeaseNow().at(0).lease_token});
  EXPECT_FALSE(harness.HasReply(ack));
  harness.Restart();
  EXPECT_EQ(harness.LeaseNow().at(0).id, job.id);
}

TEST(LeaseTest, NackComesBackAfterItsDelay) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  const Reply reply =
      harness.Call(Nack{*harness.LeaseNow().at(0).lease_token, Millis(500), "no connection"});
  ASSERT_TRUE(reply.status.ok());
  EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->state, JobState::kScheduled);
  EXPECT_EQ(std::get<Indirect<JobView>>(reply.body)->last_error, "no connection");
  harness.Wait(Millis(500));
  EXPECT_TRUE(harness.LeaseNow().empty());
  harness.Wait(Millis(1));
  EXPECT_EQ(harness.LeaseNow().at(0).attempt, 2U);
}

TEST(LeaseTest, NackWithoutDelayBacksOffMoreEachTime) {
  EngineHarness harness(
      {.defaults = {.backoff = {.initial = Millis(1000), .factor = 2, .max = Millis(3000)}}});
  harness.EnqueueOk(In(Millis(0)));
  for (const int64_t longest : {1000, 2000, 3000, 3000}) {
    ASSERT_TRUE(harness.Call(Nack{.token = *harness.LeaseNow().at(0).lease_token}).status.ok());
    harness.Wait(Millis(longest * 9 / 10 - 1));
    EXPECT_TRUE(harness.LeaseNow().empty());
    harness.Wait(Millis(longest / 10 + 2));
    harness.clock().Advance(Millis(0));
  }
  EXPECT_EQ(harness.LeaseNow().at(0).attempt, 5U);
}

TEST(LeaseTest, ANackThatIsNoAttemptWaitsAsLongAsTheFirstThatIsOne) {
  EngineHarness harness({.defaults = {.backoff = {.initial = Millis(1000), .factor = 100}}});
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  for (int i = 0; i < 2; ++i) {
    const JobView leased = harness.LeaseNow().at(0);
    EXPECT_EQ(leased.attempt, 1U);
    ASSERT_TRUE(
        harness.Call(Nack{.token = *leased.lease_token, .counts_as_attempt = false}).status.ok());
    EXPECT_GE(harness.ShowOk(job.id).time_left, Millis(900));
    harness.Wait(Millis(1001));
  }
}

TEST(LeaseTest, UsedUpAttemptsEndAmongTheDead) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.due = DueAfter{}, .key = "k", .max_attempts = 2});
  ASSERT_TRUE(
      harness.Call(Nack{*harness.LeaseNow().at(0).lease_token, Millis(0), "first"}).status.ok());
  const Reply last = harness.Call(Nack{*harness.LeaseNow().at(0).lease_token, Millis(0), "second"});
  ASSERT_TRUE(last.status.ok());
  EXPECT_EQ(std::get<Indirect<JobView>>(last.body)->state, JobState::kDead);
  harness.Restart();
  EXPECT_TRUE(harness.LeaseNow().empty());
  const JobView dead = harness.ShowOk(job.id);
  EXPECT_EQ(dead.state, JobState::kDead);
  EXPECT_EQ(dead.last_error, "second");
  EXPECT_EQ(dead.attempt, 2U);
  EXPECT_EQ(harness.engine().stats().dead, 1U);
  EXPECT_TRUE(harness.Call(Cancel{KeyRef{"default", "k"}}).status.ok());
  EXPECT_EQ(harness.engine().stats().dead, 0U);
}

TEST(LeaseTest, AnEndWithoutAnErrorKeepsTheLastOne) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.due = DueAfter{}, .max_attempts = 2});
  ASSERT_TRUE(
      harness.Call(Nack{*harness.LeaseNow().at(0).lease_token, Millis(0), "no route"}).status.ok());
  ASSERT_TRUE(harness.Call(Nack{*harness.LeaseNow().at(0).lease_token, Millis(0)}).status.ok());
  const JobView dead = harness.ShowOk(job.id);
  EXPECT_EQ(dead.state, JobState::kDead);
  EXPECT_EQ(dead.last_error, "no route");
}

TEST(LeaseTest, ExpiredLeasesUseUpAttemptsToo) {
  EngineHarness harness;
  const JobView job =
      harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(10), .max_attempts = 1});
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.Wait(Millis(10));
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kDead);
}

TEST(LeaseTest, BuryKeepsThePayload) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0), std::string(9000, 'b')));
  ASSERT_TRUE(harness.Call(Bury{*harness.LeaseNow().at(0).lease_token, "poison"}).status.ok());
  const JobView dead = harness.ShowOk(job.id);
  EXPECT_EQ(dead.state, JobState::kDead);
  EXPECT_EQ(dead.last_error, "poison");
  EXPECT_EQ(dead.payload, std::string(9000, 'b'));
}

TEST(LeaseTest, ExtendMovesTheEnd) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .lease = Millis(1000)});
  const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
  harness.Wait(Millis(900));
  ASSERT_TRUE(harness.Call(Extend{.token = token}).status.ok());
  harness.Wait(Millis(900));
  EXPECT_TRUE(harness.LeaseNow().empty());
  ASSERT_TRUE(harness.Call(Extend{token, Millis(50)}).status.ok());
  harness.Wait(Millis(50));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(LeaseTest, JobsThatExpiredUnseenGoToTheDead) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.due = DueAfter{}, .expires_after = Millis(1000)});
  harness.EnqueueOk(
      {.due = DueAfter{Millis(2000)}, .payload = "fresh", .expires_after = Millis(1000)});
  harness.Wait(Millis(2002));
  const auto leased = harness.LeaseNow(5);
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].payload, "fresh");
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kDead);
}

TEST(WaitTest, AnswersWhenAJobFallsDue) {
  EngineHarness harness;
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(10'000)});
  EXPECT_FALSE(harness.HasReply(lease));
  harness.EnqueueOk(In(Millis(50)));
  EXPECT_FALSE(harness.HasReply(lease));
  EXPECT_EQ(harness.UntilNextEvent(), Millis(51));
  harness.Wait(Millis(51));
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
}

TEST(WaitTest, EndsEmptyAfterItsTime) {
  EngineHarness harness;
  const RequestId lease = harness.Send(Lease{.queues = {"default"}, .wait = Millis(100)});
  harness.Wait(Millis(99));
  EXPECT_FALSE(harness.HasReply(lease));
  harness.Wait(Millis(1));
  EXPECT_TRUE(std::get<Leased>(harness.Take(lease).body).jobs.empty());
}

TEST(WaitTest, FirstComeFirstServed) {
  EngineHarness harness;
  const RequestId first = harness.Send(Lease{.queues = {"default"}, .wait = Millis(1000)});
  const RequestId second = harness.Send(Lease{.queues = {"default"}, .wait = Millis(1000)});
  harness.EnqueueOk(In(Millis(0)));
  EXPECT_TRUE(harness.HasReply(first));
  EXPECT_FALSE(harness.HasReply(second));
}

TEST(WaitTest, ALaterRequestDoesNotOvertakeAWaitingOne) {
  EngineHarness harness;
  const RequestId first = harness.Send(Lease{.queues = {"default"}, .wait = Millis(1000)});
  harness.Send(Enqueue{{In(Millis(0))}});
  const RequestId second = harness.Send(Lease{.queues = {"default"}});
  harness.CommitAll();
  EXPECT_EQ(std::get<Leased>(harness.Take(first).body).jobs.size(), 1U);
  EXPECT_TRUE(std::get<Leased>(harness.Take(second).body).jobs.empty());
}

TEST(WaitTest, SeveralQueuesGiveTheBestJob) {
  EngineHarness harness;
  harness.EnqueueOk({.queue = "a", .payload = "a", .priority = 9});
  harness.EnqueueOk({.queue = "b", .payload = "b", .priority = 3});
  const Reply reply = harness.Call(Lease{.queues = {"a", "b", "nowhere"}, .count = 2});
  const auto& jobs = std::get<Leased>(reply.body).jobs;
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].payload, "b");
  const RequestId waiting = harness.Send(Lease{.queues = {"a", "b"}, .wait = Millis(1000)});
  harness.EnqueueOk({.queue = "b"});
  EXPECT_TRUE(harness.HasReply(waiting));
  harness.EnqueueOk({.queue = "a"});  // must not serve the wait that has ended
}

TEST(WaitTest, SeveralQueuesGiveManyJobsInOneOrder) {
  EngineHarness harness;
  std::vector<std::string> queues;
  for (uint32_t i = 0; i < 60; ++i) {
    queues.push_back("q" + std::to_string(i * 7 % 20));  // each is named three times
    harness.EnqueueOk(
        {.queue = queues.back(), .payload = std::to_string(i), .priority = i * 37 % 60});
  }
  const Reply reply = harness.Call(Lease{.queues = queues, .count = 70});
  const auto& jobs = std::get<Leased>(reply.body).jobs;
  ASSERT_EQ(jobs.size(), 60U);
  for (uint32_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].priority, i);
  }
}

// Both queues get a job at once. Whichever is looked at first, the one who waited longer for "b"
// gets the job there.
TEST(WaitTest, WhoWaitsForSeveralQueuesOvertakesNobodyInAnyOfThem) {
  EngineHarness harness;
  const RequestId first = harness.Send(Lease{.queues = {"b"}, .wait = Millis(1000)});
  const RequestId second = harness.Send(Lease{.queues = {"a", "b"}, .wait = Millis(1000)});
  const RequestId third = harness.Send(Lease{.queues = {"a"}, .wait = Millis(1000)});
  harness.Send(Enqueue{{{.queue = "a", .payload = "a", .priority = 9},
                        {.queue = "b", .payload = "b", .priority = 3}}});
  harness.Turn();
  const auto served = std::get<Leased>(harness.Take(first).body).jobs;
  ASSERT_EQ(served.size(), 1U);
  EXPECT_EQ(served[0].payload, "b");
  EXPECT_EQ(std::get<Leased>(harness.Take(second).body).jobs.at(0).payload, "a");
  EXPECT_FALSE(harness.HasReply(third));
}

TEST(WaitTest, WhoWaitedLongestIsFoundThroughAChainOfQueues) {
  EngineHarness harness;
  const RequestId first = harness.Send(Lease{.queues = {"c"}, .wait = Millis(1000)});
  const RequestId second = harness.Send(Lease{.queues = {"b", "c"}, .wait = Millis(1000)});
  const RequestId third = harness.Send(Lease{.queues = {"a", "b"}, .wait = Millis(1000)});
  harness.Send(Enqueue{{{.queue = "a", .payload = "a", .priority = 9},
                        {.queue = "b", .payload = "b", .priority = 5},
                        {.queue = "c", .payload = "c", .priority = 1}}});
  harness.Turn();
  EXPECT_EQ(std::get<Leased>(harness.Take(first).body).jobs.at(0).payload, "c");
  EXPECT_EQ(std::get<Leased>(harness.Take(second).body).jobs.at(0).payload, "b");
  EXPECT_EQ(std::get<Leased>(harness.Take(third).body).jobs.at(0).payload, "a");
}

TEST(WaitTest, AnAbandonedWaitTakesNoJob) {
  EngineHarness harness;
  const RequestId gone = harness.Send(Lease{.queues = {"default"}, .wait = Millis(1000)});
  harness.Send(Abandon{gone});
  harness.EnqueueOk(In(Millis(0)));
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
  EXPECT_FALSE(harness.HasReply(gone));
}

// Each is a step for each queue that it names: ten thousand for a hundred would be a million.
TEST(WaitTest, P10WaitsForManyQueuesThatEndTogetherEndInSteps) {
  constexpr size_t kWaits = 1500;
  EngineHarness harness;
  Lease lease{.queues = {}, .wait = Millis(1000)};
  for (int queue = 0; queue < 100; ++queue) {
    lease.queues.push_back("q" + std::to_string(queue));
  }
  for (size_t i = 0; i < kWaits; ++i) {
    harness.Send(lease);
  }
  harness.clock().Advance(Millis(1000));
  size_t ended = 0;
  size_t turns = 1;
  for (; harness.engine().Advance(harness.now()) && turns < kWaits; ++turns) {
    const size_t now = harness.engine().TakeReplies().size();
    EXPECT_LE(now * lease.queues.size(),
              limits::kLeftNamesMax + limits::kFireWaitsMax * lease.queues.size());
    ended += now;
  }
  ended += harness.engine().TakeReplies().size();
  EXPECT_EQ(ended, kWaits);
  EXPECT_EQ(turns, 3U);
}

TEST(WaitTest, ARequestThatNamesAQueueTwiceWaitsOnce) {
  EngineHarness harness;
  const Lease twice{.queues = {"q", "q"}, .wait = Millis(1000)};
  const RequestId gone = harness.Send(twice);
  const RequestId served = harness.Send(twice);
  const RequestId over = harness.Send(twice);
  harness.Send(Abandon{gone});
  harness.EnqueueOk({.queue = "q"});
  EXPECT_EQ(std::get<Leased>(harness.Take(served).body).jobs.size(), 1U);
  harness.Wait(Millis(1000));
  EXPECT_TRUE(std::get<Leased>(harness.Take(over).body).jobs.empty());
  harness.EnqueueOk({.queue = "q"});
  EXPECT_EQ(harness.LeaseNow(2, "q").size(), 1U);
}

TEST(WaitTest, AnAbandonedAnswerGivesBackAJobThatGoesFromMemory) {
  EngineHarness harness({.horizon = Millis(600'000)});
  harness.Send(Enqueue{{In(kHour)}});
  const JobId id{1};
  const RequestId gone = harness.Send(LeaseJob{.job = id});
  harness.Send(Abandon{gone});
  harness.Turn();
  EXPECT_EQ(harness.ShowOk(id).state, JobState::kScheduled);
  EXPECT_EQ(harness.engine().Figures(1).queues.at(0).handed_out, 1U) << "counters only rise";
}

TEST(WaitTest, AnAbandonedAnswerGivesItsJobsBackUnused) {
  EngineHarness harness;
  harness.Send(Enqueue{{In(Millis(0))}});
  const RequestId gone = harness.Send(Lease{.queues = {"default"}});
  harness.Send(Abandon{gone});
  harness.CommitAll();
  EXPECT_TRUE(std::get<Leased>(harness.Take(gone).body).jobs.empty());
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].attempt, 1U);
}

TEST(WaitTest, BadRequestsAreRefusedByName) {
  EngineHarness harness;
  EXPECT_EQ(harness.ReasonOf(Lease{}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a b"}}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a"}, .count = 0}), "invalid_count");
  EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a"}, .count = limits::kLeaseCountMax + 1}),
            "invalid_count");
  EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a"}, .wait = Millis(-1)}), "invalid_wait");
  for (const Millis lease : {Millis(0), Millis(limits::kLeaseMsMax + 1)}) {
    EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a"}, .lease = lease}), "invalid_lease");
    EXPECT_EQ(harness.ReasonOf(LeaseJob{.job = JobId{1}, .lease = lease}), "invalid_lease");
  }
  const std::string long_name(limits::kClientNameBytesMax + 1, 'c');
  EXPECT_EQ(harness.ReasonOf(Lease{.queues = {"a"}, .client = long_name}), "invalid_client");
  EXPECT_EQ(harness.ReasonOf(LeaseJob{.job = JobId{1}, .client = long_name}), "invalid_client");
  harness.EnqueueOk(In(Millis(0)));
  const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
  EXPECT_EQ(harness.ReasonOf(Nack{.token = token, .delay = Millis(-1)}), "invalid_delay");
}

TEST(LeaseTest, P9ADamagedRecordIsNamedAndStays) {
  EngineHarness harness;
  const JobView bad = harness.EnqueueOk(In(Millis(0), "payload to be damaged"));
  harness.EnqueueOk(In(Millis(0), "good"));
  std::string key;
  std::string value;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kTimers,
                        std::string(1, '\0'),
                        {},
                        [&](std::string_view k, std::string_view v) {
                          key = k;
                          value = v;
                          return false;
                        })
                  .ok());
  value[value.find("damaged")] ^= 1;
  storage::Batch damage;
  damage.Put(storage::Table::kTimers, key, value);
  ASSERT_TRUE(harness.store().Commit(damage).ok());

  const auto leased = harness.LeaseNow(5);
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].payload, "good");
  const auto incidents = harness.engine().TakeIncidents();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_TRUE(incidents[0].message().starts_with("job " + std::to_string(ToInt(bad.id))))
      << incidents[0].message();
  EXPECT_EQ(harness.Call(Show{bad.id}).status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(harness.Call(Cancel{bad.id}).status.code(), StatusCode::kDataLoss);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  harness.Wait(Millis(100'000));
  // Neither the low-water mark nor a restart loses sight of it.
  harness.EnqueueOk(In(Millis(0)));
  harness.Restart();
  EXPECT_EQ(harness.engine().stats().ready, 2U);
  EXPECT_TRUE(harness.engine().fatal().ok());
}

// Each is read and answered in one turn, while everybody waits.
TEST(LeaseTest, ManyBigJobsAreHandedOutInPortions) {
  EngineHarness harness;
  for (int i = 0; i < 10; ++i) {
    harness.EnqueueOk(In(Millis(0), std::string(1'000'000, 'x')));
  }
  EXPECT_EQ(harness.LeaseNow(10).size(), 3U);
  EXPECT_EQ(harness.LeaseNow(10).size(), 3U);
}

TEST(WaitTest, AnAbandonedRequestOfAnotherKindIsAnsweredAllTheSame) {
  EngineHarness harness;
  const RequestId enqueue = harness.Send(Enqueue{{In(Millis(0))}});
  harness.Send(Abandon{enqueue});
  harness.CommitAll();
  EXPECT_TRUE(std::get<Enqueued>(harness.Take(enqueue).body).items.size() == 1);
}

// Each end of a lease reads a record.
TEST(LeaseTest, P10LeasesThatEndTogetherKeepNobodyWaitingForLong) {
  Millis worked{0};
  const auto slow_disk = [&worked] { return worked += Millis(limits::kOwnWorkMs); };
  EngineHarness harness(EngineOptions{.stopwatch = slow_disk});
  const uint32_t count = 4 * limits::kFireStepMax;
  harness.Send(Enqueue{std::vector<JobSpec>(count, In(Millis(0)))});
  ASSERT_EQ(harness.LeaseNow(count).size(), count);
  harness.clock().Advance(kHour);
  for (size_t turns = 1; turns <= 4; ++turns) {
    EXPECT_TRUE(harness.engine().Advance(harness.now()));
    EXPECT_EQ(harness.engine().stats().lease_expired, turns * limits::kFireStepMax);
  }
}

}  // namespace
}  // namespace delayd::engine

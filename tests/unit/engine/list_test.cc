#include <map>
#include <random>
#include <set>

#include "base/limits.h"
#include "storage/record.h"
#include "tests/support/seed.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

std::vector<JobView> ListAll(EngineHarness* harness, List command) {
  std::vector<JobView> jobs;
  do {
    Reply reply = harness->Call(command);
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    if (!reply.status.ok()) {
      break;
    }
    auto& page = std::get<JobList>(reply.body);
    jobs.insert(jobs.end(), page.jobs.begin(), page.jobs.end());
    command.cursor = page.next_cursor;
  } while (!command.cursor.empty());
  return jobs;
}

TEST(ListTest, PagesHaveNoDoublesAndNoHoles) {
  EngineHarness harness;
  for (int i = 0; i < 250; ++i) {
    harness.Send(
        Enqueue{{{.queue = i % 2 == 0 ? "a" : "b", .due = DueAfter{Millis(1000 + i / 50)}}}});
  }
  harness.Turn();
  for (const uint32_t limit : {1U, 7U, 100U, 1000U}) {
    std::set<JobId> ids;
    for (const JobView& job : ListAll(&harness, {.limit = limit})) {
      EXPECT_TRUE(ids.insert(job.id).second);
    }
    EXPECT_EQ(ids.size(), 250U);
    EXPECT_EQ(ListAll(&harness, {.limit = limit, .cursor = "0-0"}).size(), 250U)
        << "the first page, as delayctl list tells it (protocol::kFirstPageCursor)";
    EXPECT_EQ(ListAll(&harness, {.queue = "a", .limit = limit}).size(), 125U);
  }
}

Command MoveTo(JobId id, Millis delay) {
  Reschedule command;
  command.job = id;
  command.due = DueAfter{delay};
  return command;
}

// Others change the queue between any two pages: what they leave alone is listed exactly once.
TEST(ListTest, PagesUnderConcurrentChangesHaveNoDoublesAndNoHoles) {
  std::mt19937_64 random(test::Seed());
  for (int round = 0; round < 20; ++round) {
    EngineHarness harness(EngineOptions{.horizon = Millis(2000)});
    std::set<JobId> untouched;
    std::vector<JobId> others;
    const auto enqueue = [&] {
      return harness.EnqueueOk({.queue = "q", .due = DueAfter{Millis(random() % 5000)}}).id;
    };
    for (int i = 0; i < 100; ++i) {
      const JobId id = enqueue();
      i % 2 == 0 ? static_cast<void>(untouched.insert(id)) : others.push_back(id);
    }
    List command{.limit = static_cast<uint32_t>(1 + random() % 9)};
    if (round % 2 == 0) {
      command.queue = "q";
    }
    std::map<JobId, int> listed;
    std::set<JobId> moved;
    do {
      const auto page = std::get<JobList>(harness.Call(command).body);
      for (const JobView& job : page.jobs) {
        ++listed[job.id];
      }
      command.cursor = page.next_cursor;
      const JobId victim = others[random() % others.size()];
      switch (random() % 4) {
        case 0:
          others.push_back(enqueue());
          break;
        case 1:
          harness.Send(Cancel{victim});
          break;
        case 2:
          moved.insert(victim);
          harness.Send(MoveTo(victim, Millis(random() % 5000)));
          break;
        default:
          harness.Wait(Millis(random() % 50));
          break;
      }
    } while (!command.cursor.empty());
    for (const JobId id : untouched) {
      EXPECT_EQ(listed[id], 1) << ToInt(id);
    }
    for (const auto& [id, times] : listed) {
      EXPECT_TRUE(times <= 1 || moved.contains(id)) << ToInt(id);
    }
  }
}

TEST(ListTest, FiltersByTheTrueDueTimeOfJobsThatWereLateWhenTheyCame) {
  EngineHarness harness;
  // The low-water mark goes up to now, and what comes late is keyed there.
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
  harness.Wait(Millis(5000));
  harness.EnqueueOk(In(Millis(0)));
  const WallTime hour_ago = harness.now().wall - std::chrono::hours(1);
  const JobView late = harness.EnqueueOk({.due = DueAt{hour_ago}});
  const auto before = ListAll(&harness, {.due_before = hour_ago + Millis(1)});
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].id, late.id);
  EXPECT_EQ(ListAll(&harness, {.due_after = hour_ago + Millis(1)}).size(), 1U);
  EXPECT_EQ(ListAll(&harness, {.queue = "default", .due_before = hour_ago + Millis(1)}).size(), 1U);
}

TEST(ListTest, ShowsSoonestFirst) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(3000), "c"));
  harness.EnqueueOk(In(Millis(1000), "a"));
  harness.EnqueueOk(In(Millis(2000), "b"));
  std::string order;
  for (const JobView& job : ListAll(&harness, {.with_payload = true})) {
    order += *job.payload;
  }
  EXPECT_EQ(order, "abc");
}

TEST(ListTest, FiltersByStateKeyAndDue) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{Millis(0)}, .key = "order:1"});
  harness.EnqueueOk({.due = DueAfter{Millis(0)}, .key = "mail:1"});
  harness.EnqueueOk({.due = DueAfter{Millis(5000)}, .key = "order:2"});
  harness.EnqueueOk({.due = DueAfter{Millis(9000)}, .key = "order:3"});
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  EXPECT_EQ(ListAll(&harness, {.state = JobState::kScheduled}).size(), 2U);
  EXPECT_EQ(ListAll(&harness, {.state = JobState::kReady}).size(), 1U);
  EXPECT_EQ(ListAll(&harness, {.state = JobState::kLeased}).size(), 1U);
  EXPECT_EQ(ListAll(&harness, {.key_prefix = "order:"}).size(), 3U);
  EXPECT_EQ(ListAll(&harness, {.due_before = harness.now().wall + Millis(5001)}).size(), 3U);
  EXPECT_EQ(ListAll(&harness, {.due_after = harness.now().wall + Millis(5001)}).size(), 1U);
}

TEST(ListTest, DeadAndFinishedAreListedOnRequest) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAfter{}, .key = "a"});
  harness.EnqueueOk({.due = DueAfter{}, .key = "b"});
  const auto leased = harness.LeaseNow(2);
  ASSERT_EQ(leased.size(), 2U);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  ASSERT_TRUE(harness.Call(Bury{*leased[1].lease_token, "bad"}).status.ok());
  EXPECT_TRUE(ListAll(&harness, {}).empty());
  const auto dead = ListAll(&harness, {.queue = "default", .state = JobState::kDead});
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].last_error, "bad");
  const auto finished = ListAll(&harness, {.state = JobState::kFinished});
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].outcome, "acked");
}

TEST(ListTest, BadRequestsAreRefusedByName) {
  EngineHarness harness;
  EXPECT_EQ(harness.ReasonOf(List{.queue = "nowhere"}), "not_found");
  EXPECT_EQ(harness.ReasonOf(List{.limit = 1001}), "invalid_limit");
  for (const char* cursor :
       {"zz", "-", "1-", "-1", "1x-2", "1-2x", "1-zz", "ffffffffffff-1", "1-20000000000000"}) {
    EXPECT_EQ(harness.ReasonOf(List{.cursor = cursor}), "invalid_cursor") << cursor;
  }
  harness.EnqueueOk(In(Millis(0)));
  const List dead{.queue = "default", .state = JobState::kDead, .cursor = "zz"};
  EXPECT_EQ(harness.ReasonOf(dead), "invalid_cursor");
  EXPECT_EQ(harness.ReasonOf(List{.state = JobState::kFinished, .cursor = "zz"}), "invalid_cursor");
  EXPECT_EQ(harness.ReasonOf(List{.state = JobState::kDead}), "queue_required");
}

TEST(ListTest, ShowsNothingThatIsNotDurable) {
  EngineHarness harness;
  harness.Send(Enqueue{{In(Millis(1000))}});
  const RequestId list = harness.Send(List{});
  EXPECT_TRUE(std::get<JobList>(harness.Take(list).body).jobs.empty());
}

TEST(ListTest, AJobThatMovesWithABatchUnderWayIsNotMissing) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  harness.Send(Reschedule{.job = job.id, .due = DueAfter{Millis(5000)}});
  const RequestId all = harness.Send(List{});
  const RequestId soon = harness.Send(List{.due_before = harness.now().wall + Millis(2000)});
  EXPECT_FALSE(harness.HasReply(all));  // it shows a change that is not durable
  harness.CommitAll();
  const auto listed = std::get<JobList>(harness.Take(all).body).jobs;
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].due, harness.now().wall + Millis(5000));
  EXPECT_TRUE(std::get<JobList>(harness.Take(soon).body).jobs.empty());
}

TEST(ListTest, AJobBelowAMarkUnderWayIsNotMissing) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  const JobView leased = harness.LeaseNow().at(0);
  harness.clock().Advance(Millis(100));
  harness.Send(Nack{.token = *leased.lease_token, .delay = Millis(5000)});
  // The batch under way carries the mark past the only row that is durable.
  ASSERT_TRUE(harness.engine().Seal(harness.now()).has_value());
  const RequestId list = harness.Send(List{});
  harness.engine().Committed(harness.engine().stats().commit_sequence + 1);
  const auto listed = std::get<JobList>(harness.Take(list).body).jobs;
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, job.id);
}

TEST(ListTest, TheLowWaterMarkIsLookedForAfterSoManyJobs) {
  EngineHarness harness(EngineOptions{.jobs_per_mark = 8});
  const auto mark = [&harness] {
    std::string value;
    const Status got = harness.store().Get(storage::Table::kMeta, "lwm", &value);
    return got.ok() ? *storage::DecodeNumber("lwm", value) : 0;
  };
  harness.Wait(Millis(1000));
  for (int i = 0; i < 7; ++i) {
    harness.EnqueueOk(In(Millis(3600000)));
  }
  EXPECT_EQ(mark(), 0U);
  harness.EnqueueOk(In(Millis(3600000)));
  EXPECT_EQ(mark(), static_cast<uint64_t>(ToMillis(harness.now().wall)));
  EXPECT_EQ(ListAll(&harness, {}).size(), 8U);
  harness.Wait(Millis(1000));
  harness.Send(Enqueue{std::vector<JobSpec>(9, In(Millis(3600000)))});
  harness.CommitAll();
  EXPECT_EQ(mark(), static_cast<uint64_t>(ToMillis(harness.now().wall)));
}

TEST(ListTest, NeverLooksBelowTheLowWaterMark) {
  EngineHarness harness;
  for (int i = 0; i < 20; ++i) {
    harness.EnqueueOk(In(Millis(0)));
    ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
    harness.Wait(Millis(10));
  }
  std::string mark;
  ASSERT_TRUE(harness.store().Get(storage::Table::kMeta, "lwm", &mark).ok());
  harness.EnqueueOk(In(Millis(0)));
  EXPECT_EQ(ListAll(&harness, {}).size(), 1U);
}

TEST(ListTest, APageEndsWithSoManyBytesOfPayloads) {
  EngineHarness harness;
  for (int i = 0; i < 11; ++i) {
    harness.EnqueueOk(In(Millis(1000), std::string(125'000, 'x')));
  }
  const Reply first = harness.Call(List{.with_payload = true});
  EXPECT_EQ(std::get<JobList>(first.body).jobs.size(), 9U);
  EXPECT_EQ(ListAll(&harness, {.with_payload = true}).size(), 11U);
}

TEST(ListTest, APageEndsWithSoManyRowsWhetherTheyFitOrNot) {
  EngineHarness harness;
  for (size_t i = 0; i < limits::kListScanRowsMax; i += 1000) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, In(Millis(1000)))});
  }
  harness.CommitAll();
  harness.EnqueueOk(Keyed("last", Millis(2000)));
  const List command{.key_prefix = "last"};
  const Reply first = harness.Call(command);
  EXPECT_TRUE(std::get<JobList>(first.body).jobs.empty());
  EXPECT_FALSE(std::get<JobList>(first.body).next_cursor.empty());
  EXPECT_EQ(ListAll(&harness, command).size(), 1U);
}

// As many rows as a page looks at, and more, of jobs in another state.
void EnqueueOthers(EngineHarness* harness, Millis delay) {
  for (size_t i = 0; i <= limits::kListScanRowsMax; i += 1000) {
    harness->Send(Enqueue{std::vector<JobSpec>(1000, In(delay))});
  }
  harness->CommitAll();
}

std::vector<std::string> PayloadsOfFirstPage(EngineHarness* harness, List command) {
  command.with_payload = true;
  const Reply reply = harness->Call(std::move(command));
  const auto& page = std::get<JobList>(reply.body);
  EXPECT_EQ(page.next_cursor, "");
  std::vector<std::string> payloads;
  for (const JobView& job : page.jobs) {
    payloads.push_back(job.payload.value_or("none"));
  }
  return payloads;
}

TEST(ListTest, TheFewLeasedJobsAreNotLookedForAmongTheRowsOfOthers) {
  EngineHarness harness;
  EnqueueOthers(&harness, Millis(0));
  EXPECT_TRUE(PayloadsOfFirstPage(&harness, {.state = JobState::kLeased}).empty());
  harness.Wait(Millis(1));
  for (const std::string name : {"first", "second", "third"}) {
    JobSpec urgent = In(Millis(0), name);
    urgent.priority = 0;
    harness.EnqueueOk(urgent);
  }
  harness.LeaseNow(3);
  harness.EnqueueOk(ForQueue("other", Millis(0), "of another queue"));
  harness.LeaseNow(1, "other");
  EXPECT_EQ(PayloadsOfFirstPage(&harness, {.queue = "default", .state = JobState::kLeased}),
            (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(PayloadsOfFirstPage(&harness, {.state = JobState::kLeased}).size(), 4U);
  std::vector<std::string> paged;
  for (const JobView& job :
       ListAll(&harness, {.state = JobState::kLeased, .limit = 1, .with_payload = true})) {
    paged.push_back(*job.payload);
  }
  EXPECT_EQ(paged, (std::vector<std::string>{"first", "second", "third", "of another queue"}));
}

TEST(ListTest, ReadyJobsAreNotLookedForAmongTheRowsOfLaterOnes) {
  EngineHarness harness;
  EnqueueOthers(&harness, Millis(7'200'000));
  EXPECT_TRUE(PayloadsOfFirstPage(&harness, {.state = JobState::kReady}).empty());
  harness.EnqueueOk(In(Millis(0), "ready"));
  EXPECT_EQ(PayloadsOfFirstPage(&harness, {.state = JobState::kReady}),
            std::vector<std::string>{"ready"});
}

// Its old row is behind all that can be due.
TEST(ListTest, AJobThatIsKickedWithABatchUnderWayIsListedAmongTheReady) {
  EngineHarness harness;
  const JobView far = harness.EnqueueOk(In(Millis(7'200'000)));
  harness.Send(Kick{far.id});
  for (const std::optional<std::string>& queue : {std::optional<std::string>("default"), {}}) {
    const RequestId list = harness.Send(List{.queue = queue, .state = JobState::kReady});
    harness.CommitAll();
    EXPECT_EQ(std::get<JobList>(harness.Take(list).body).jobs.size(), 1U);
    harness.Call(MoveTo(far.id, Millis(7'200'000)));
    harness.Send(Kick{far.id});
  }
}

TEST(ListTest, P1AListByStateWaitsForTheKickThatLeavesAJobOut) {
  EngineHarness harness;
  harness.Send(Kick{harness.EnqueueOk(In(Millis(1000))).id});
  const RequestId list = harness.Send(List{.state = JobState::kScheduled});
  EXPECT_FALSE(harness.HasReply(list)) << "after a power cut the job is scheduled";
  harness.CommitAll();
  EXPECT_TRUE(std::get<JobList>(harness.Take(list).body).jobs.empty());
}

// Of a job that went far and came back, the row on the way was never there.
TEST(ListTest, AJobThatMovesTwiceWithBatchesUnderWayIsListedOnce) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  harness.Send(MoveTo(job.id, Millis(7'200'000)));
  harness.Send(Kick{job.id});
  const RequestId list = harness.Send(List{.state = JobState::kReady});
  harness.CommitAll();
  EXPECT_EQ(std::get<JobList>(harness.Take(list).body).jobs.size(), 1U);
}

TEST(ListTest, AReadyJobIsListedAlsoWhereTheClockWasSetBackSinceTheLastTurn) {
  EngineHarness harness;
  harness.EnqueueOk({.due = DueAt{harness.now().wall}});
  harness.clock().StepWall(-kHour);
  const RequestId list = harness.Send(List{.state = JobState::kReady});
  EXPECT_EQ(std::get<JobList>(harness.Take(list).body).jobs.size(), 1U);
}

// More than are looked through in memory.
TEST(ListTest, VeryManyLeasedJobsAreListedFromTheirRows) {
  EngineHarness harness;
  size_t jobs = 0;
  for (; jobs <= limits::kListLeasesMax; jobs += 1000) {
    harness.Send(Enqueue{std::vector<JobSpec>(1000, In(Millis(0)))});
    harness.CommitAll();
    harness.LeaseNow(1000);
  }
  EXPECT_EQ(ListAll(&harness, {.state = JobState::kLeased, .limit = 1000}).size(), jobs);
}

TEST(ListTest, WhereNoJobIsReadyNoRowOfALeasedOneIsLookedAt) {
  EngineHarness harness;
  EnqueueOthers(&harness, Millis(0));
  while (harness.engine().stats().ready > 0) {
    harness.LeaseNow(1000);
  }
  EXPECT_TRUE(PayloadsOfFirstPage(&harness, {.state = JobState::kReady}).empty());
}

TEST(ListTest, ADeadJobThatIsRevivedOrCancelledUnderWayIsNotListedAmongTheDead) {
  EngineHarness harness;
  for (int i = 0; i < 3; ++i) {
    harness.EnqueueOk(In(Millis(0)));
  }
  const auto leased = harness.LeaseNow(3);
  for (const JobView& job : leased) {
    ASSERT_TRUE(harness.Call(Bury{.token = *job.lease_token}).status.ok());
  }
  harness.Send(Kick{leased.at(0).id});
  harness.Send(Cancel{leased.at(1).id});
  const RequestId list = harness.Send(List{.queue = "default", .state = JobState::kDead});
  EXPECT_FALSE(harness.HasReply(list)) << "P1: it rests on what is not durable";
  harness.CommitAll();
  const auto dead = std::get<JobList>(harness.Take(list).body).jobs;
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].id, leased[2].id);
}

TEST(ListTest, AFinishedJobThatIsForgottenUnderWayIsNotListed) {
  EngineHarness harness({.defaults = {.history_retention = Millis(60'000)}});
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
  harness.clock().Advance(Millis(60'000));
  harness.engine().Advance(harness.now());  // its rows go with a batch that is not durable yet
  const RequestId list = harness.Send(List{.state = JobState::kFinished});
  harness.CommitAll();
  EXPECT_TRUE(std::get<JobList>(harness.Take(list).body).jobs.empty());
}

TEST(ListTest, FinishedJobsComeInPagesToo) {
  EngineHarness harness({.defaults = {.history_retention = Millis(60'000)}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(harness.Call(Cancel{harness.EnqueueOk(In(Millis(1000))).id}).status.ok());
  }
  EXPECT_EQ(ListAll(&harness, {.state = JobState::kFinished, .limit = 1}).size(), 3U);
}

TEST(ListTest, ADeadJobThatIsRevivedAndDiesAgainUnderWayIsListedAsItWillBe) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(
      {.due = DueAfter{}, .payload = "p", .lease = Millis(10), .max_attempts = 1});
  ASSERT_TRUE(harness.Call(Bury{.token = *harness.LeaseNow().at(0).lease_token, .error = "bad"})
                  .status.ok());
  harness.Send(Kick{job.id});
  harness.Send(Lease{.queues = {"default"}});
  harness.clock().Advance(Millis(10));
  harness.engine().Advance(harness.now());  // the lease is over, and with it the only attempt
  const RequestId list = harness.Send(List{.queue = "default", .state = JobState::kDead});
  EXPECT_FALSE(harness.HasReply(list)) << "P1: it shows what is not durable";
  harness.CommitAll();
  const auto dead = std::get<JobList>(harness.Take(list).body).jobs;
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].last_error, "lease expired before an ack");
}

}  // namespace
}  // namespace delayd::engine

#include <gmock/gmock.h>

#include "base/limits.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(EnqueueTest, P1NoAnswerBeforeTheCommit) {
  EngineHarness harness;
  const RequestId request = harness.Send(Enqueue{{In(Millis(1000))}});
  EXPECT_FALSE(harness.HasReply(request));
  harness.CommitAll();
  EXPECT_TRUE(harness.Take(request).status.ok());
}

TEST(EnqueueTest, P1ADurableBatchIsAnsweredBeforeTheStoreShowsIt) {
  EngineHarness harness;
  const RequestId first = harness.Send(Enqueue{{In(Millis(1000))}});
  const auto sealed = harness.engine().Seal(harness.now());
  ASSERT_TRUE(sealed.has_value());
  const RequestId second = harness.Send(Enqueue{{In(Millis(1000))}});
  const auto next = harness.engine().Seal(harness.now());
  ASSERT_TRUE(next.has_value());
  harness.engine().Durable(sealed->sequence);
  ASSERT_TRUE(harness.HasReply(first));
  EXPECT_FALSE(harness.HasReply(second));
  // What is asked now is seen in the batch, and answered when the store shows it.
  const JobId id = std::get<Enqueued>(harness.Take(first).body).items.at(0).job.id;
  const RequestId show = harness.Send(Show{id});
  EXPECT_FALSE(harness.HasReply(show));
  ASSERT_TRUE(harness.store().Commit(*sealed->batch).ok());
  harness.engine().Committed(sealed->sequence);
  EXPECT_EQ(std::get<Indirect<JobView>>(harness.Take(show).body)->payload, "p");
  EXPECT_FALSE(harness.HasReply(second));
  ASSERT_TRUE(harness.store().Commit(*next->batch).ok());
  harness.engine().Committed(next->sequence);
  EXPECT_TRUE(harness.HasReply(second));
}

TEST(EnqueueTest, P1AnUncommittedJobIsNeverHandedOut) {
  EngineHarness harness;
  harness.Send(Enqueue{{In(Millis(0))}});
  const RequestId lease = harness.Send(Lease{.queues = {"default"}});
  harness.engine().Advance(harness.now());
  EXPECT_FALSE(harness.HasReply(lease));
  harness.CommitAll();
  EXPECT_EQ(std::get<Leased>(harness.Take(lease).body).jobs.size(), 1U);
}

TEST(EnqueueTest, AnswersRestOnTheCommitTheyNeedAndNotOnLaterOnes) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(1000)));
  harness.Send(Enqueue{{In(Millis(1000))}});
  const RequestId show = harness.Send(Show{job.id});
  EXPECT_TRUE(harness.HasReply(show));
}

TEST(EnqueueTest, TellsWhatItStored) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk({.queue = "orders",
                                         .due = DueAfter{Millis(1000)},
                                         .payload = "body",
                                         .key = "order:1",
                                         .priority = 7,
                                         .lease = Millis(5000),
                                         .max_attempts = 3,
                                         .expires_after = Millis(9000)});
  const JobView shown = harness.ShowOk(job.id);
  EXPECT_EQ(shown.queue, "orders");
  EXPECT_EQ(shown.key, "order:1");
  EXPECT_EQ(shown.state, JobState::kScheduled);
  EXPECT_EQ(shown.due, harness.now().wall + Millis(1000));
  EXPECT_EQ(shown.created, harness.now().wall);
  EXPECT_EQ(shown.priority, 7U);
  EXPECT_EQ(shown.lease, Millis(5000));
  EXPECT_EQ(shown.max_attempts, 3U);
  EXPECT_EQ(shown.expires_after, Millis(9000));
  EXPECT_EQ(shown.payload, "body");
  EXPECT_EQ(shown.payload_bytes, 4U);
  EXPECT_EQ(shown.attempt, 0U);
}

TEST(EnqueueTest, BigPayloadsComeBackWhole) {
  EngineHarness harness;
  const std::string payload(100'000, 'x');
  const JobView job = harness.EnqueueOk(In(Millis(0), payload));
  EXPECT_EQ(harness.ShowOk(job.id).payload, payload);
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].payload, payload);
}

TEST(EnqueueTest, BadInputIsRefusedByName) {
  EngineHarness harness;
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.queue = "a b"}}}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.queue = "-a"}}}), "invalid_queue");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.key = std::string(201, 'k')}}}), "invalid_key");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.key = "a\nb"}}}), "invalid_key");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(-1))}}), "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(limits::kDelayMsMax + 1))}}), "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.due = DueAt{WallFromMillis(-1)}}}}), "invalid_due");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.lease = Millis(0)}}}), "invalid_lease");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.lease = Millis(limits::kLeaseMsMax + 1)}}}),
            "invalid_lease");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.expires_after = Millis(0)}}}), "invalid_expires_after");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.expires_after = Millis(limits::kDelayMsMax + 1)}}}),
            "invalid_expires_after");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.touch_delay = Millis(-1)}}}), "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.touch_delay = Millis(limits::kDelayMsMax + 1)}}}),
            "invalid_delay");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(0), std::string((1 << 20) + 1, 'x'))}}),
            "payload_too_large");
  EXPECT_EQ(harness.ReasonOf(Enqueue{}), "invalid_batch");
  EXPECT_EQ(harness.ReasonOf(Enqueue{std::vector<JobSpec>(limits::kEnqueueBatchJobsMax + 1)}),
            "invalid_batch");
  EXPECT_EQ(harness.engine().stats().scheduled + harness.engine().stats().ready, 0U);
}

TEST(EnqueueTest, P7SameKeyAndContentIsTheSameJob) {
  EngineHarness harness;
  const JobView first = harness.EnqueueOk(Keyed("k", Millis(1000)));
  harness.Wait(Millis(500));
  const Reply again = harness.Call(Enqueue{{Keyed("k", Millis(1000))}});
  ASSERT_TRUE(again.status.ok());
  const auto& item = std::get<Enqueued>(again.body).items.at(0);
  EXPECT_TRUE(item.existed);
  EXPECT_EQ(item.job.id, first.id);
  EXPECT_EQ(item.job.due, first.due);
}

// A store keeps fingerprints, so they must stay as they were in earlier releases.
TEST(EnqueueTest, P7FingerprintsOfABatchAreThoseOfItsJobsSentAlone) {
  struct Known {
    size_t payload_bytes;
    uint64_t fingerprint;
  };

  const std::vector<Known> known = {{5000, 0x40eb23ba633ed884},
                                    {1, 0x0b378205a8c49a2a},
                                    {0, 0x6dc0da875e8c844c},
                                    {2049, 0x76a1177a5e5f6ff8},
                                    {7, 0x5bbd71c7ed763589},
                                    {3, 0x08fdfb177c767c8a}};
  EngineHarness harness;
  Enqueue batch;
  for (const Known& job : known) {
    const auto letter = static_cast<char>('a' + batch.jobs.size());
    batch.jobs.push_back(Keyed({letter}, Millis(1000), std::string(job.payload_bytes, letter)));
  }
  batch.jobs.insert(batch.jobs.begin() + 2, In(Millis(1000), "without a key"));
  const std::vector<JobSpec> alone = batch.jobs;
  const Reply reply = harness.Call(std::move(batch));
  ASSERT_TRUE(reply.status.ok());
  for (const JobSpec& spec : alone) {
    if (!spec.key.empty()) {
      const auto number = static_cast<size_t>(spec.key[0] - 'a');
      EXPECT_EQ(harness.EnqueueOk(spec).fingerprint, known[number].fingerprint) << number;
    }
  }
  EXPECT_EQ(harness.engine().stats().scheduled, alone.size());
}

TEST(EnqueueTest, P7OtherContentUnderALiveKeyIsAConflict) {
  EngineHarness harness;
  harness.EnqueueOk(Keyed("k", Millis(1000)));
  EXPECT_EQ(harness.ReasonOf(Enqueue{{Keyed("k", Millis(1000), "other")}}), "key_conflict");
  EXPECT_EQ(harness.ReasonOf(Enqueue{{Keyed("k", Millis(1001))}}), "key_conflict");
  EXPECT_TRUE(harness.Call(Enqueue{{{.queue = "q2", .key = "k"}}}).status.ok());
}

TEST(EnqueueTest, ADrainSaysHowItEnds) {
  EngineHarness harness;
  harness.Call(Drain{.on = true});
  const Reply refused = harness.Call(Enqueue{{In(Millis(0))}});
  EXPECT_EQ(refused.status.reason(), "draining");
  EXPECT_THAT(refused.status.message(), ::testing::HasSubstr("delayctl drain end"));
  harness.Call(Drain{.on = false});
  harness.EnqueueOk(In(Millis(0)));
}

TEST(EnqueueTest, P7AProducersRetryFindsAJobThatWasMovedHere) {
  EngineHarness there;
  const JobView before = there.EnqueueOk(Keyed("k", Millis(1000)));
  EngineHarness harness;
  JobSpec moved{.queue = before.queue,
                .due = DueAt{before.due},
                .payload = "p",
                .key = "k",
                .priority = before.priority,
                .lease = before.lease,
                .max_attempts = before.max_attempts};
  moved.past = std::make_shared<JobPast>();
  moved.past->fingerprint = before.fingerprint;
  const JobView job = harness.EnqueueOk(moved);
  EXPECT_EQ(job.fingerprint, before.fingerprint);
  EXPECT_EQ(harness.EnqueueOk(Keyed("k", Millis(1000))).id, job.id);
  EXPECT_EQ(harness.EnqueueOk(moved).id, job.id) << "and so does a second import";
  EXPECT_EQ(harness.ReasonOf(Enqueue{{Keyed("k", Millis(1000), "other")}}), "key_conflict");
}

// Whose first answer was lost must not take the job elsewhere.
TEST(EnqueueTest, P7ADrainAnswersRetriesOfWhatIsStored) {
  EngineHarness harness;
  const JobView first = harness.EnqueueOk(Keyed("k", Millis(1000)));
  harness.Call(Drain{.on = true});
  EXPECT_EQ(harness.EnqueueOk(Keyed("k", Millis(1000))).id, first.id);
  JobSpec pushed_out = Keyed("k", Millis(2000));
  pushed_out.on_conflict = OnConflict::kReplace;
  EXPECT_EQ(harness.EnqueueOk(pushed_out).id, first.id);
  EXPECT_EQ(harness.ReasonOf(Enqueue{{pushed_out, In(Millis(0))}}), "draining");
}

TEST(EnqueueTest, P7APriorityThatIsTheDefaultIsTheSameContentAsNone) {
  EngineHarness harness;
  const JobView first = harness.EnqueueOk({.key = "k"});
  EXPECT_EQ(harness.EnqueueOk({.key = "k", .priority = limits::kPriorityDefault}).id, first.id);
  EXPECT_EQ(harness.ReasonOf(Enqueue{{{.key = "k", .priority = 0}}}), "key_conflict");

  const JobView spelled = harness.EnqueueOk({.key = "l", .priority = limits::kPriorityDefault});
  EXPECT_EQ(harness.EnqueueOk({.key = "l"}).id, spelled.id);
}

TEST(EnqueueTest, P7HoldsWhileTheFirstIsNotYetCommitted) {
  EngineHarness harness;
  const RequestId first = harness.Send(Enqueue{{Keyed("k", Millis(1000))}});
  const RequestId same = harness.Send(Enqueue{{Keyed("k", Millis(1000))}});
  const RequestId other = harness.Send(Enqueue{{Keyed("k", Millis(1000), "other")}});
  EXPECT_FALSE(harness.HasReply(same));
  harness.CommitAll();
  const Reply first_reply = harness.Take(first);
  const Reply same_reply = harness.Take(same);
  EXPECT_EQ(std::get<Enqueued>(same_reply.body).items[0].job.id,
            std::get<Enqueued>(first_reply.body).items[0].job.id);
  EXPECT_TRUE(std::get<Enqueued>(same_reply.body).items[0].existed);
  EXPECT_EQ(harness.Take(other).status.reason(), "key_conflict");
}

TEST(EnqueueTest, P7HoldsForTheRetentionAfterTheEndAndOverARestart) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  const JobView job = harness.EnqueueOk(Keyed("k"));
  const auto leased = harness.LeaseNow();
  ASSERT_EQ(leased.size(), 1U);
  ASSERT_TRUE(harness.Call(Ack{*leased[0].lease_token}).status.ok());
  harness.Restart();
  const Reply again = harness.Call(Enqueue{{Keyed("k")}});
  ASSERT_TRUE(again.status.ok()) << again.status.message();
  const auto& item = std::get<Enqueued>(again.body).items.at(0);
  EXPECT_TRUE(item.existed);
  EXPECT_EQ(item.job.id, job.id);
  EXPECT_EQ(item.job.state, JobState::kFinished);
  EXPECT_EQ(item.job.outcome, "acked");

  harness.Wait(Millis(60'001));
  EXPECT_NE(harness.EnqueueOk(Keyed("k")).id, job.id);
}

size_t CountFinishedRows(EngineHarness* harness) {
  size_t rows = 0;
  const auto count = [&rows](std::string_view, std::string_view) {
    ++rows;
    return true;
  };
  EXPECT_TRUE(harness->store().Scan(storage::Table::kDone, std::string(1, '\0'), {}, count).ok());
  return rows;
}

TEST(EnqueueTest, AJobThatFinishesDuringATrimIsForgottenInItsTime) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  const JobView first = harness.EnqueueOk(Keyed("a", Millis(1000)));
  const JobView second = harness.EnqueueOk(Keyed("b", Millis(1000)));
  ASSERT_TRUE(harness.Call(Cancel{first.id}).status.ok());
  harness.clock().Advance(Millis(59'999));
  harness.Send(Cancel{second.id});
  harness.Wait(Millis(1));  // trims the first; the second is not durable yet
  EXPECT_EQ(CountFinishedRows(&harness), 1U);
  ASSERT_TRUE(harness.UntilNextEvent().has_value());
  harness.Wait(Millis(60'000));
  EXPECT_EQ(CountFinishedRows(&harness), 0U);
}

TEST(EnqueueTest, ATrimDoesNotPassAFinishedJobUnderWayAfterAStepBack) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  const JobView first = harness.EnqueueOk(Keyed("a", Millis(1000)));
  const JobView second = harness.EnqueueOk(Keyed("b", Millis(1000)));
  harness.clock().StepWall(Millis(600'000));
  ASSERT_TRUE(harness.Call(Cancel{first.id}).status.ok());
  harness.clock().StepWall(Millis(-600'000));
  harness.Send(Cancel{second.id});  // finished before the first, by the wall clock
  harness.clock().StepWall(Millis(1'200'000));
  harness.Wait(Millis(60'000));
  harness.Wait(Millis(1000));
  harness.Wait(Millis(1000));
  EXPECT_EQ(CountFinishedRows(&harness), 0U);
}

TEST(EnqueueTest, AFinishedJobOfAClockThatWasAheadHoldsUpNoOther) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  const JobView first = harness.EnqueueOk(Keyed("a", Millis(1000)));
  const JobView second = harness.EnqueueOk(Keyed("b", Millis(1000)));
  const JobView third = harness.EnqueueOk(Keyed("c", Millis(1000)));
  const auto year = std::chrono::hours(24 * 365);
  harness.clock().StepWall(year);
  ASSERT_TRUE(harness.Call(Cancel{first.id}).status.ok());
  harness.clock().StepWall(-year);
  harness.Restart();  // the first is the only one, and its trim is a year away
  ASSERT_TRUE(harness.Call(Cancel{second.id}).status.ok());
  ASSERT_TRUE(harness.Call(Cancel{third.id}).status.ok());
  harness.Wait(Millis(60'000));
  harness.Wait(Millis(limits::kTrimIntervalMsMin));
  EXPECT_EQ(CountFinishedRows(&harness), 1U);
}

TEST(EnqueueTest, AJobThatFinishesAmongThoseForgottenLastIsForgottenToo) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  const JobView first = harness.EnqueueOk(Keyed("a", Millis(1000)));
  const JobView second = harness.EnqueueOk(Keyed("b", Millis(1000)));
  ASSERT_TRUE(harness.Call(Cancel{second.id}).status.ok());
  harness.Wait(Millis(60'000));
  EXPECT_EQ(CountFinishedRows(&harness), 0U);
  harness.clock().StepWall(Millis(-120'000));
  ASSERT_TRUE(harness.Call(Cancel{first.id}).status.ok());  // in the millisecond of the second
  const Reply list = harness.Call(List{.state = JobState::kFinished});
  EXPECT_EQ(std::get<JobList>(list.body).jobs.size(), 1U);
  harness.Wait(Millis(120'000));
  EXPECT_EQ(CountFinishedRows(&harness), 0U);
}

TEST(EnqueueTest, OtherContentUnderAFinishedKeyIsANewJob) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(Keyed("k", Millis(1000)));
  ASSERT_TRUE(harness.Call(Cancel{KeyRef{"default", "k"}}).status.ok());
  const JobView next = harness.EnqueueOk(Keyed("k", Millis(2000)));
  EXPECT_NE(next.id, job.id);
  EXPECT_EQ(harness.ReasonOf(Cancel{job.id}), "finished");
  EXPECT_TRUE(harness.Call(Cancel{KeyRef{"default", "k"}}).status.ok());
}

TEST(EnqueueTest, FinishedKeysAreForgottenAfterTheirRetention) {
  EngineHarness harness({.defaults = {.key_retention = Millis(60'000)}});
  for (int i = 0; i < 10; ++i) {
    harness.EnqueueOk(Keyed("k" + std::to_string(i), Millis(5000)));
    ASSERT_TRUE(harness.Call(Cancel{KeyRef{"default", "k" + std::to_string(i)}}).status.ok());
    harness.Wait(Millis(10));
  }
  const auto rows = [&](storage::Table table, std::string_view from) {
    int count = 0;
    EXPECT_TRUE(harness.store()
                    .Scan(table,
                          from,
                          {},
                          [&](std::string_view, std::string_view) {
                            ++count;
                            return true;
                          })
                    .ok());
    return count;
  };
  EXPECT_EQ(rows(storage::Table::kKeys, {}), 10);
  harness.Wait(Millis(59'000));
  EXPECT_EQ(rows(storage::Table::kKeys, {}), 10);
  harness.Wait(Millis(2'000));
  harness.Wait(Millis(2'000));
  EXPECT_EQ(rows(storage::Table::kKeys, {}), 0);
  EXPECT_EQ(rows(storage::Table::kDone, std::string(1, '\0')), 0);
  EXPECT_FALSE(harness.UntilNextEvent().has_value());
}

TEST(EnqueueTest, IdsAscendAndAreNeverUsedAgain) {
  EngineHarness harness;
  JobId last{};
  for (int start = 0; start < 3; ++start) {
    for (int i = 0; i < 5; ++i) {
      const JobView job = harness.EnqueueOk(In(Millis(0)));
      EXPECT_GT(job.id, last);
      last = job.id;
      ASSERT_TRUE(harness.Call(Cancel{job.id}).status.ok());
    }
    harness.Send(Enqueue{{In(Millis(0))}});  // takes an id and is never committed
    harness.Restart();
  }
}

TEST(EnqueueTest, OnAFullDiskOnlyNewJobsAreRefused) {
  EngineHarness harness;
  const JobSpec keyed{.due = DueAfter{Millis(0)}, .payload = "x", .key = "k"};
  const JobView first = harness.EnqueueOk(keyed);
  const JobView second = harness.EnqueueOk(In(Millis(0)));
  const JobView third = harness.EnqueueOk(In(Millis(60'000)));
  harness.engine().RefuseEnqueues(ResourceExhausted("full", "disk_full"));
  const auto ask = [&harness](Command command) {
    const RequestId request = harness.Send(std::move(command));
    harness.CommitAll();
    return harness.Take(request);
  };
  const auto lease = [&]() -> std::optional<JobView> {
    harness.engine().Advance(harness.now());
    const Reply reply = ask(Lease{.queues = {"default"}});
    const auto& jobs = std::get<Leased>(reply.body).jobs;
    return jobs.empty() ? std::nullopt : std::optional(jobs[0]);
  };
  EXPECT_EQ(ask(Enqueue{{In(Millis(0))}}).status.reason(), "disk_full");
  EXPECT_EQ(ask(Enqueue{{keyed, In(Millis(0))}}).status.reason(), "disk_full");
  const Reply retry = ask(Enqueue{{keyed}});
  ASSERT_TRUE(retry.status.ok()) << "it is stored already";
  EXPECT_EQ(std::get<Enqueued>(retry.body).items[0].job.id, first.id);
  harness.Wait(Millis(10));
  std::optional<JobView> job = lease();
  ASSERT_TRUE(job.has_value());
  EXPECT_TRUE(ask(Ack{*job->lease_token}).status.ok());
  job = lease();
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->id, second.id);
  EXPECT_TRUE(ask(Nack{*job->lease_token, Millis(10), ""}).status.ok());
  EXPECT_TRUE(ask(Reschedule{third.id, DueAfter{Millis(5)}, std::nullopt}).status.ok());
  EXPECT_TRUE(ask(Cancel{third.id}).status.ok());
  harness.engine().RefuseEnqueues(OkStatus());
  EXPECT_TRUE(ask(Enqueue{{In(Millis(0))}}).status.ok());
}

TEST(EnqueueTest, ABriefAnswerNamesTheJobsAlone) {
  EngineHarness harness;
  const JobId kept = harness.EnqueueOk(Keyed("k")).id;
  Enqueue command{.jobs = {In(Millis(0)), Keyed("k"), Keyed("new"), Keyed("new")}, .brief = true};
  const Reply reply = harness.Call(std::move(command));
  ASSERT_TRUE(reply.status.ok()) << reply.status.message();
  const auto& items = std::get<EnqueuedIds>(reply.body).items;
  ASSERT_EQ(items.size(), 4U);
  EXPECT_FALSE(items[0].existed);
  EXPECT_EQ(items[1].id, kept);
  EXPECT_TRUE(items[1].existed);
  EXPECT_FALSE(items[2].existed);
  EXPECT_EQ(items[3].id, items[2].id);
  EXPECT_TRUE(items[3].existed);
  const Reply cancelled = harness.Call(Cancel{.job = items[2].id, .if_tag = {}, .brief = true});
  EXPECT_TRUE(cancelled.status.ok());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(cancelled.body));
  EXPECT_EQ(harness.ShowOk(items[2].id).outcome, "cancelled");
  const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
  const Reply acked = harness.Call(Ack{.token = token, .brief = true});
  EXPECT_TRUE(acked.status.ok());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(acked.body));
}

TEST(EnqueueTest, ABriefAnswerTellsWhichJobsWillNotFire) {
  EngineHarness harness;
  harness.EnqueueOk(Keyed("acked"));
  harness.Call(Ack{.token = *harness.LeaseNow().at(0).lease_token});
  harness.Call(Cancel{.job = harness.EnqueueOk(Keyed("cancelled")).id});
  JobSpec dead = Keyed("dead");
  dead.buried = true;
  harness.EnqueueOk(dead);
  harness.EnqueueOk(Keyed("live"));
  const auto ended = [&](const std::vector<JobSpec>& jobs) {
    const Reply reply = harness.Call(Enqueue{.jobs = jobs, .brief = true});
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    std::string told;
    for (const auto& item : std::get<EnqueuedIds>(reply.body).items) {
      told += std::string(item.ended ? JobStateName(*item.ended) : "-") +
              (item.cancelled ? " cancelled\n" : "\n");
    }
    return told;
  };
  EXPECT_EQ(ended({Keyed("acked"), Keyed("cancelled"), dead, Keyed("live"), dead}),
            "finished\nfinished cancelled\ndead\n-\ndead\n");
  dead.key = "new";
  EXPECT_EQ(ended({dead, dead}), "-\n-\n") << "nothing was there";
  JobSpec replacing = Keyed("dead");
  replacing.on_conflict = OnConflict::kReplace;
  EXPECT_EQ(ended({replacing}), "-\n");
}

TEST(EnqueueTest, P1ABriefAnswerWaitsForTheKickItRestsOn) {
  EngineHarness harness;
  JobSpec dead = Keyed("dead");
  dead.buried = true;
  harness.Send(Kick{harness.EnqueueOk(dead).id});
  const RequestId again = harness.Send(Enqueue{.jobs = {dead}, .brief = true});
  EXPECT_FALSE(harness.HasReply(again)) << "after a power cut the job will not fire";
  harness.CommitAll();
  EXPECT_FALSE(std::get<EnqueuedIds>(harness.Take(again).body).items.at(0).ended.has_value());
}

TEST(EnqueueTest, AfterTheLastIdNoJobIsTakenAndNoneIsUsedTwice) {
  EngineHarness harness;
  storage::Batch batch;
  const std::string_view mark = storage::kIdHighWaterMarkKey;
  batch.Put(storage::Table::kMeta, mark, storage::EncodeNumber(mark, limits::kJobIdMax));
  ASSERT_TRUE(harness.store().Commit(batch).ok());
  harness.Restart();
  EXPECT_EQ(harness.EnqueueOk(In(Millis(1000))).id, JobId{limits::kJobIdMax});
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(1000))}}), "ids_exhausted");
  harness.Restart();
  EXPECT_EQ(harness.ReasonOf(Enqueue{{In(Millis(1000))}}), "ids_exhausted");
  EXPECT_EQ(harness.engine().stats().scheduled, 1U);
}

TEST(EnqueueTest, BigJobsAreDividedOverSeveralBoundedBatches) {
  EngineHarness harness;
  for (int i = 0; i < 5; ++i) {
    harness.Send(Enqueue{{In(Millis(1000), std::string(600'000, 'x'))}});
  }
  EXPECT_GT(harness.engine().uncommitted_bytes(), 5 * size_t{600'000});
  size_t batches = 0;
  while (harness.CommitOne()) {
    ++batches;
  }
  EXPECT_EQ(batches, 3U);
  EXPECT_EQ(harness.engine().uncommitted_bytes(), 0U);
}

}  // namespace
}  // namespace delayd::engine

#include <algorithm>
#include <vector>

#include "base/limits.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

TEST(RestartTest, EverythingCommittedIsThereAgain) {
  EngineHarness harness;
  const JobView far = harness.EnqueueOk(In(Millis(10'000)));
  const JobView ready = harness.EnqueueOk(In(Millis(0)));
  harness.Restart();
  EXPECT_EQ(harness.ShowOk(far.id).state, JobState::kScheduled);
  EXPECT_EQ(harness.ShowOk(ready.id).state, JobState::kReady);
  EXPECT_EQ(harness.LeaseNow(5).size(), 1U);
  harness.Wait(Millis(10'001));
  EXPECT_EQ(harness.LeaseNow(5).size(), 1U);
}

TEST(RestartTest, LeasedJobsAreReadyAgain) {
  EngineHarness harness;
  const JobView job = harness.EnqueueOk(In(Millis(0)));
  ASSERT_EQ(harness.LeaseNow().size(), 1U);
  harness.Restart();
  EXPECT_EQ(harness.ShowOk(job.id).state, JobState::kReady);
}

TEST(RestartTest, OverdueJobsComeOldestFirst) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(300), "c"));
  harness.EnqueueOk(In(Millis(100), "a"));
  harness.EnqueueOk(In(Millis(200), "b"));
  harness.clock().Advance(Millis(1'000'000));
  harness.Restart();
  std::string order;
  for (const JobView& job : harness.LeaseNow(5)) {
    order += *job.payload;
  }
  EXPECT_EQ(order, "abc");
}

TEST(RestartTest, P10JobsBelowTheMarkAreNeverBorn) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(0)));
  ASSERT_TRUE(harness.Call(Ack{*harness.LeaseNow().at(0).lease_token}).status.ok());
  harness.Wait(Millis(10'000));
  harness.EnqueueOk(In(Millis(1)));  // carries the mark forward
  // Due long before the mark: still found by a restart, and handed out.
  const JobView late = harness.EnqueueOk({.due = DueAt{harness.now().wall - Millis(9'999)}});
  harness.Restart();
  EXPECT_EQ(harness.ShowOk(late.id).due, harness.now().wall - Millis(9'999));
  EXPECT_EQ(harness.LeaseNow(5).size(), 1U);
}

// On another boot it fires a rounding later than its key says.
TEST(RestartTest, P3TheMarkStaysBelowADueJobThatHasNotFiredYet) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  harness.Restart(kBootId + 1);
  harness.clock().Advance(Millis(2000));
  harness.Send(Enqueue{{In(Millis(60'000))}});
  EXPECT_TRUE(harness.CommitAll()) << "before a turn";
  harness.Restart(kBootId + 1);
  EXPECT_EQ(harness.LeaseNow().size(), 1U);
}

TEST(RestartTest, P9AMissingTimerIsNoticedByTheCounts) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  std::string key;
  ASSERT_TRUE(harness.store()
                  .Scan(storage::Table::kTimers,
                        std::string(1, '\0'),
                        {},
                        [&](std::string_view k, std::string_view) {
                          key = k;
                          return false;
                        })
                  .ok());
  storage::Batch damage;
  damage.Delete(storage::Table::kTimers, key);
  ASSERT_TRUE(harness.store().Commit(damage).ok());
  const auto loaded = Engine::Load({.boot_id = kBootId}, harness.store(), harness.now());
  EXPECT_EQ(loaded.status().code(), StatusCode::kDataLoss);
}

TEST(RestartTest, CommitSequencesGoOn) {
  EngineHarness harness;
  harness.EnqueueOk(In(Millis(1000)));
  const uint64_t before = harness.engine().stats().commit_sequence;
  harness.Restart();
  EXPECT_GT(harness.engine().stats().commit_sequence, before);
}

// A second life of the same store begins from a copy that knows nothing of the first one.
class OtherLifeTest : public ::testing::Test {
 protected:
  OtherLifeTest() { harness_.EnqueueOk(In(Millis(0))); }

  void PutBack(const storage::MemoryJobStore& backup) {
    harness_.store() = backup;
    harness_.Restart();
  }

  EngineHarness harness_;
};

TEST_F(OtherLifeTest, P6NoLeaseTokenIsGivenOutTwice) {
  const storage::MemoryJobStore backup = harness_.store();
  std::vector<LeaseToken> tokens;
  for (int life = 0; life < 4; ++life) {
    harness_.clock().Advance(Millis(3000));
    PutBack(backup);
    tokens.push_back(*harness_.LeaseNow().at(0).lease_token);
    EXPECT_EQ(std::ranges::count(tokens, tokens.back()), 1) << "life " << life;
  }
}

TEST_F(OtherLifeTest, NoIdIsGivenOutTwice) {
  const storage::MemoryJobStore backup = harness_.store();
  harness_.clock().Advance(Millis(60'000));
  harness_.Restart();  // as for an upgrade
  const JobId first = harness_.EnqueueOk(In(Millis(0))).id;
  harness_.clock().Advance(Millis(3000));
  PutBack(backup);
  harness_.Restart();  // though no id was given out meanwhile
  EXPECT_GT(harness_.EnqueueOk(In(Millis(0))).id, first);
}

TEST_F(OtherLifeTest, P6ACrashLoopDoesNotOutrunTheClock) {
  const storage::MemoryJobStore backup = harness_.store();
  std::vector<JobId> ids;
  std::vector<LeaseToken> tokens;
  for (int life = 0; life < 2; ++life) {
    for (int start = 0; start < 20; ++start) {
      harness_.clock().Advance(Millis(50));
      harness_.Restart();
      ids.push_back(harness_.EnqueueOk(In(Millis(0))).id);
      tokens.push_back(*harness_.LeaseNow().at(0).lease_token);
    }
    harness_.clock().Advance(Millis(50));
    PutBack(backup);
  }
  for (const JobId id : ids) {
    EXPECT_EQ(std::ranges::count(ids, id), 1);
  }
  for (const LeaseToken& token : tokens) {
    EXPECT_EQ(std::ranges::count(tokens, token), 1);
  }
}

TEST_F(OtherLifeTest, P4StartsInQuickSuccessionDoNotOutrunTheClock) {
  const storage::MemoryJobStore backup = harness_.store();
  const WallTime began = harness_.now().wall;
  for (int start = 0; start < 12; ++start) {
    harness_.clock().Advance(Millis(40));
    harness_.Restart();
  }
  const JobId given = harness_.EnqueueOk(In(Millis(0))).id;
  while (harness_.now().wall < began + Millis(20'000)) {
    harness_.clock().Advance(Millis(250));
    PutBack(backup);
    EXPECT_NE(harness_.EnqueueOk(In(Millis(0))).id, given);
  }
}

TEST_F(OtherLifeTest, P4ACopyThatIsPutBackTwiceWithinASecondGivesOtherIds) {
  const storage::MemoryJobStore backup = harness_.store();
  harness_.clock().Advance(Millis(300));
  PutBack(backup);
  const JobId first = harness_.EnqueueOk(In(Millis(0))).id;
  harness_.clock().Advance(Millis(300));
  PutBack(backup);
  EXPECT_NE(harness_.EnqueueOk(In(Millis(0))).id, first);
}

// The engine's own time stands where the copy was made.
TEST_F(OtherLifeTest, P6BehindAHeldClockGoesByWhatTheMachineShows) {
  const storage::MemoryJobStore backup = harness_.store();
  const WallTime made = harness_.now().wall;
  std::vector<JobId> ids;
  std::vector<uint64_t> epochs;
  for (const uint64_t boot : {101U, 102U}) {
    harness_.RestartWith({.machine_wall = made + boot * kHour});
    harness_.store() = backup;
    harness_.Restart(boot);
    ids.push_back(harness_.EnqueueOk(In(Millis(0))).id);
    epochs.push_back(harness_.LeaseNow().at(0).lease_token->epoch);
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST_F(OtherLifeTest, IdsStayCloseWhereTheStoreWasInUse) {
  harness_.clock().Advance(kHour);
  const JobId before = harness_.EnqueueOk(In(Millis(0))).id;
  harness_.clock().Advance(Millis(2000));
  harness_.Restart();
  EXPECT_LE(ToInt(harness_.EnqueueOk(In(Millis(0))).id),
            ToInt(before) + 3 * limits::kJobIdsASecond);
}

TEST_F(OtherLifeTest, AClockThatIsWrongLeavesIdsForLater) {
  harness_.clock().StepWall(Millis(limits::kWallMsMax) - harness_.now().wall.time_since_epoch());
  harness_.Restart();
  EXPECT_LT(ToInt(harness_.EnqueueOk(In(Millis(0))).id), limits::kJobIdMax / 200);
  const uint64_t epoch = harness_.engine().stats().epoch;
  harness_.clock().StepWall(-harness_.now().wall.time_since_epoch() - kHour);
  harness_.Restart();
  EXPECT_EQ(harness_.engine().stats().epoch, epoch + 1);
  EXPECT_LT(ToInt(harness_.EnqueueOk(In(Millis(0))).id), limits::kJobIdMax / 200);
}

}  // namespace
}  // namespace delayd::engine

// Random lives with room for few jobs in memory: what lies on disk only is neither lost, nor
// doubled, nor early.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/support/seed.h"
#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

using namespace std::chrono_literals;

constexpr size_t kJobsMax = 10;

// A sanitizer takes thirty times as long for a life.
#if defined(DELAYD_SANITIZED)
constexpr uint64_t kLives = 10;
#else
constexpr uint64_t kLives = 60;
#endif

class TightLife {
 public:
  explicit TightLife(uint64_t seed)
      : random_(seed),
        harness_({.horizon = Millis(1 + static_cast<int64_t>(random_() % 3000)),
                  .memory_jobs_max = kJobsMax}) {}

  void Run() {
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) {
      Step();
    }
    WorkOff();
    EXPECT_TRUE(due_.empty()) << due_.size() << " jobs were never handed out";
    const StatsView stats = harness_.engine().stats();
    EXPECT_EQ(stats.scheduled + stats.ready + stats.leased + stats.dead, 0U);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  // The jobs that wait or are leased, by what is known of them.
  JobId AnyJob() {
    auto job = due_.begin();
    std::advance(job, static_cast<std::ptrdiff_t>(Below(due_.size())));
    return job->first;
  }

  Millis Delay() { return Millis(static_cast<int64_t>(Below(Below(4) == 0 ? 60'000 : 4000))); }

  void Step() {
    const uint64_t dice = Below(100);
    if (dice < 30) {
      Enqueue();
    } else if (dice < 55) {
      Lease(static_cast<uint32_t>(1 + Below(6)));
    } else if (dice < 70) {
      EndOne();
    } else if (dice < 76 && !due_.empty()) {
      Move(AnyJob());
    } else if (dice < 80 && !due_.empty()) {
      Cancel(AnyJob());
    } else if (dice < 82) {
      harness_.CommitAll();
      harness_.Restart();
      held_.clear();
    } else {
      harness_.Wait(Millis(static_cast<int64_t>(Below(1500))));
    }
    CheckMemory();
  }

  void Enqueue() {
    engine::Enqueue command;
    for (uint64_t n = 1 + Below(8); n > 0; --n) {
      JobSpec spec = In(Delay());
      spec.priority = static_cast<uint32_t>(Below(3));
      spec.lease = std::chrono::hours(1);  // a life is shorter: what is held stays so
      if (Below(3) == 0) {
        spec.due = DueAt{harness_.now().wall + Delay()};
      }
      command.jobs.push_back(std::move(spec));
    }
    const Reply reply = harness_.Call(std::move(command));
    ASSERT_TRUE(reply.status.ok());
    for (const auto& item : std::get<Enqueued>(reply.body).items) {
      due_[item.job.id] = item.job.due;
    }
  }

  void Lease(uint32_t count) {
    for (const JobView& job : harness_.LeaseNow(count)) {
      ASSERT_TRUE(due_.contains(job.id)) << "job " << ToInt(job.id) << " had come to its end";
      EXPECT_GE(harness_.now().wall, due_.at(job.id)) << "early (P2)";
      EXPECT_TRUE(held_.emplace(job.id, *job.lease_token).second) << "handed out twice (P5)";
    }
  }

  void EndOne() {
    if (held_.empty()) {
      return;
    }
    const auto [id, token] = *held_.begin();
    held_.erase(held_.begin());
    switch (Below(3)) {
      case 0: {
        const Reply reply = harness_.Call(Nack{.token = token, .delay = Delay()});
        ASSERT_TRUE(reply.status.ok());
        due_[id] = std::get<Indirect<JobView>>(reply.body)->due;
        break;
      }
      case 1:
        ASSERT_TRUE(harness_.Call(GiveBack{token}).status.ok());
        break;
      default:
        ASSERT_TRUE(harness_.Call(Ack{token}).status.ok());
        due_.erase(id);
    }
  }

  void Move(JobId id) {
    Reschedule command;  // filled in: g++ 12 warns of the initialised one
    command.job = id;
    command.due = DueAfter{Delay()};
    const Reply reply = harness_.Call(std::move(command));
    ASSERT_EQ(reply.status.ok(), !held_.contains(id)) << reply.status.message();
    if (reply.status.ok()) {
      due_[id] = std::get<Indirect<JobView>>(reply.body)->due;
    }
  }

  void Cancel(JobId id) {
    const Reply reply = harness_.Call(engine::Cancel{id});
    ASSERT_EQ(reply.status.ok(), !held_.contains(id)) << reply.status.message();
    if (reply.status.ok()) {
      due_.erase(id);
    }
  }

  void CheckMemory() {
    const StatsView stats = harness_.engine().stats();
    EXPECT_EQ(stats.scheduled + stats.ready + stats.leased, due_.size());
    EXPECT_LE(stats.ready, kJobsMax + kJobsMax / 4 + 1) << "memory is bounded (P10)";
    // Leased jobs stay, whatever the budget.
    EXPECT_LE(harness_.engine().Figures(0).jobs_in_memory,
              kJobsMax + kJobsMax / 4 + 1 + stats.leased)
        << "memory is bounded (P10)";
    EXPECT_TRUE(harness_.engine().fatal().ok()) << harness_.engine().fatal().message();
  }

  std::string Waiting() {
    const StatsView stats = harness_.engine().stats();
    std::string text = std::to_string(stats.scheduled) + " scheduled, " +
                       std::to_string(stats.leased) + " leased, now " +
                       std::to_string(ToMillis(harness_.now().wall)) + ", due at";
    for (const auto& [id, due] : due_) {
      text += " " + std::to_string(ToMillis(due));
    }
    return text;
  }

  void WorkOff() {
    for (int turn = 0; turn < 2000 && !due_.empty() && !::testing::Test::HasFailure(); ++turn) {
      while (!held_.empty()) {
        ASSERT_TRUE(harness_.Call(Ack{held_.begin()->second}).status.ok());
        due_.erase(held_.begin()->first);
        held_.erase(held_.begin());
      }
      Lease(7);
      if (!due_.empty() && held_.empty() && harness_.engine().stats().ready == 0) {
        const auto next = harness_.UntilNextEvent();
        ASSERT_TRUE(next.has_value()) << "sleeps for ever while jobs wait (P3): " << Waiting();
        harness_.Wait(std::max(*next, Millis(1)));
      }
    }
  }

  std::mt19937_64 random_;
  EngineHarness harness_;
  std::map<JobId, WallTime> due_;
  std::map<JobId, LeaseToken> held_;
};

TEST(BudgetTest, P10WhatHasNoRoomInMemoryIsHandedOutAllTheSame) {
  for (uint64_t life = 0; life < kLives && !HasFailure(); ++life) {
    SCOPED_TRACE("DELAYD_SEED=" + std::to_string(delayd::test::Seed()) + ", life " +
                 std::to_string(life));
    TightLife(delayd::test::Seed() + life).Run();
  }
}

}  // namespace
}  // namespace delayd::engine

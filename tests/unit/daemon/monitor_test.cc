#include "daemon/monitor.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/unit/daemon/fake_engine.h"

namespace delayd {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const Now kLater{WallFromMillis(1'800'000'000'000), BootFromMillis(5'000'000)};

class MonitorTest : public ::testing::Test {
 protected:
  FakeEngine engine_;
  Monitor monitor_{{.version = "1"}, &engine_, {}, nullptr};
};

TEST_F(MonitorTest, WithoutFindingsItIsHealthyAndReady) {
  EXPECT_EQ(monitor_.Health(kLater).body, R"({"status":"ok","version":"1"})");
  EXPECT_EQ(monitor_.Readiness(kLater).body, R"({"status":"ready","version":"1"})");
  EXPECT_THAT(monitor_.Metrics(kLater).body, HasSubstr("delayd_ready 1\n"));
}

TEST_F(MonitorTest, AFullDiskIsNotReadyAndAlive) {
  engine_.RefuseEnqueues(ResourceExhausted("no room", "disk_full"));
  EXPECT_EQ(monitor_.Health(kLater).status, 200);
  EXPECT_EQ(monitor_.Readiness(kLater).status, 503);
  EXPECT_THAT(monitor_.Readiness(kLater).body, HasSubstr("disk_full"));
  EXPECT_THAT(monitor_.Metrics(kLater).body, HasSubstr("delayd_ready 0\n"));
}

TEST_F(MonitorTest, ABacklogOnDiskIsToldAndServed) {
  engine_.backlog = ResourceExhausted("jobs wait on disk", "memory_full");
  EXPECT_EQ(monitor_.Readiness(kLater).status, 200);
  EXPECT_THAT(monitor_.Readiness(kLater).body, HasSubstr("memory_full"));
}

TEST_F(MonitorTest, ADrainIsToldAndWorkersAreLetIn) {
  engine_.drains = true;
  const http::Response readiness = monitor_.Readiness(kLater);
  EXPECT_EQ(readiness.status, 200);
  EXPECT_THAT(readiness.body, HasSubstr(R"("status":"degraded")"));
  EXPECT_THAT(readiness.body, HasSubstr(R"("code":"draining")"));
  EXPECT_THAT(readiness.body, HasSubstr("delayctl drain end"));
  EXPECT_THAT(monitor_.Metrics(kLater).body, HasSubstr("delayd_draining 1\n"));
  EXPECT_EQ(monitor_.Health(kLater).status, 200);
}

TEST_F(MonitorTest, ACommitThatTakesLongIsToldBeforeItIsStuck) {
  EXPECT_FALSE(monitor_.CheckCommit(std::nullopt));
  EXPECT_FALSE(monitor_.CheckCommit(4s));
  const auto late = monitor_.CheckCommit(6s);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->code, "commit_late");
  EXPECT_TRUE(late->ready && late->healthy);
  EXPECT_THAT(late->detail, HasSubstr("under way for 6s"));
  const auto stuck = monitor_.CheckCommit(31s);
  ASSERT_TRUE(stuck);
  EXPECT_EQ(stuck->code, "commit_stuck");
  EXPECT_FALSE(stuck->ready || stuck->healthy);
}

TEST_F(MonitorTest, TheDiskIsMeasuredWhereItCanBeAsked) {
  StatusOr<uint64_t> free = uint64_t{5000};
  uint64_t files = 300;
  const Monitor monitor({.version = "1",
                         .disk = {.directory = "here",
                                  .reserve = 700,
                                  .free_bytes = [&free](const std::string&) { return free; },
                                  .free_files = [&files](const std::string&) { return files; }}},
                        &engine_,
                        {},
                        nullptr);
  EXPECT_THAT(monitor.Metrics(kLater).body, HasSubstr("delayd_disk_free_bytes 5000\n"));
  EXPECT_THAT(monitor.Metrics(kLater).body, HasSubstr("delayd_disk_reserve_bytes 700\n"));
  EXPECT_THAT(monitor.Metrics(kLater).body, HasSubstr("delayd_disk_free_inodes 300\n"));
  files = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(monitor.Metrics(kLater).body, Not(HasSubstr("delayd_disk_free_inodes")));
  free = Unavailable("it is gone");
  EXPECT_THAT(monitor.Metrics(kLater).body, Not(HasSubstr("delayd_disk_free_bytes")));
}

TEST_F(MonitorTest, ASuspectClockIsTold) {
  SimulatedClock machine(kLater);
  std::optional<WallTime> synchronised;
  TrustedClock clock(&machine, {}, std::nullopt, 1, [&synchronised] { return synchronised; });
  monitor_.Watch(&clock);
  EXPECT_THAT(monitor_.Readiness(kLater).body, Not(HasSubstr("clock")));
  machine.StepWall(24h * 365);
  EXPECT_EQ(clock.Sample().wall, kLater.wall);
  EXPECT_FALSE(clock.Tend()) << "nobody knows better";
  const http::Response readiness = monitor_.Readiness(kLater);
  EXPECT_EQ(readiness.status, 200) << "everything that can be served is served";
  EXPECT_THAT(readiness.body, HasSubstr(R"("status":"degraded")"));
  EXPECT_THAT(readiness.body, HasSubstr("clock_suspect"));
  EXPECT_THAT(readiness.body, HasSubstr("delayctl clock accept"));
  EXPECT_THAT(monitor_.Metrics(kLater).body, HasSubstr("delayd_clock_held 1\n"));
  synchronised = kLater.wall;
  machine.Advance(1s);
  EXPECT_FALSE(clock.Tend()) << "said before the clock was set";
  machine.Advance(1s);
  synchronised = machine.Sample().wall + 1s;
  EXPECT_FALSE(clock.Tend()) << "said when the clock was ahead of what it is now";
  synchronised = machine.Sample().wall;
  EXPECT_FALSE(clock.Tend()) << "asked once a second";
  machine.Advance(1s);
  synchronised = machine.Sample().wall;  // the kernel says it of this moment
  EXPECT_TRUE(clock.Tend());
  EXPECT_EQ(clock.Sample().wall, machine.Sample().wall);
  EXPECT_THAT(monitor_.Readiness(kLater).body, HasSubstr(R"("status":"ready")"));
}

TEST_F(MonitorTest, TheSynchronisationThatSetTheClockBackIsBelievedAndNoOlderOne) {
  for (const Millis said : {Millis(-5), Millis(-60'000), Millis(60'000)}) {
    SimulatedClock machine(kLater);
    std::optional<WallTime> synchronised;
    TrustedClock clock(&machine, {}, std::nullopt, 1, [&synchronised] { return synchronised; });
    clock.Sample();
    machine.StepWall(-24h);
    synchronised = machine.Sample().wall + said;
    machine.Advance(1ms);
    clock.Sample();
    ASSERT_EQ(clock.state(), engine::ClockState::kBehind);
    machine.Advance(2s);
    EXPECT_EQ(clock.Tend(), said == Millis(-5)) << "said right behind the step";
    machine.Advance(120s);
    EXPECT_EQ(clock.Tend(), false) << "what was said before the step is no news later either";
    synchronised = machine.Sample().wall;
    machine.Advance(2s);
    EXPECT_EQ(clock.Tend(), said != Millis(-5)) << "said again";
  }
}

}  // namespace
}  // namespace delayd

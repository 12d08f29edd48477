#include "daemon/awake_processors.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/log.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/server_fixture.h"

namespace delayd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kAwake = 0;
constexpr int32_t kAny = -1;

BootTime At(int64_t ms) {
  return BootTime(Millis(ms));
}

// A file that keeps what the kernel would be asked for.
class AskedOf {
 public:
  AskedOf() { std::ofstream(path_, std::ios::trunc); }

  const std::string& path() const { return path_; }

  std::vector<int32_t> latencies() const {
    std::ifstream file(path_, std::ios::binary);
    std::vector<int32_t> all;
    for (int32_t one = 0; file.read(reinterpret_cast<char*>(&one), sizeof one);) {
      all.push_back(one);
    }
    return all;
  }

  std::unique_ptr<AwakeProcessors> Open(Millis idle) const {
    StatusOr<std::unique_ptr<AwakeProcessors>> opened = AwakeProcessors::Open(idle, path_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(opened).value();
  }

 private:
  const test::TempDir dir_;
  const std::string path_ = dir_.Sub("cpu_dma_latency");
};

TEST(AwakeProcessorsTest, NothingIsAskedForWithoutWork) {
  const AskedOf asked;
  const auto processors = asked.Open(Millis(20));
  processors->Tend(At(1000));
  EXPECT_FALSE(processors->awake());
  EXPECT_EQ(processors->wake(), std::nullopt);
  EXPECT_THAT(asked.latencies(), IsEmpty());
}

TEST(AwakeProcessorsTest, TheyAreAwakeFromTheFirstWorkUntilItHasBeenQuietForSoLong) {
  const AskedOf asked;
  const auto processors = asked.Open(Millis(20));
  processors->Work(At(1000));
  EXPECT_TRUE(processors->awake());
  EXPECT_EQ(processors->wake(), At(1020));
  processors->Work(At(1015));
  EXPECT_EQ(processors->wake(), At(1020)) << "the timer was moved";
  processors->Tend(At(1019));
  EXPECT_EQ(processors->wake(), At(1020));
  processors->Tend(At(1020));
  EXPECT_EQ(processors->wake(), At(1035));
  EXPECT_THAT(asked.latencies(), ElementsAre(kAwake));
  processors->Tend(At(1035));
  EXPECT_FALSE(processors->awake());
  EXPECT_THAT(asked.latencies(), ElementsAre(kAwake, kAny));
  processors->Work(At(5000));
  EXPECT_THAT(asked.latencies(), ElementsAre(kAwake, kAny, kAwake));
}

TEST(AwakeProcessorsTest, HowLongTheyWereAwakeIsCounted) {
  const AskedOf asked;
  const auto processors = asked.Open(Millis(20));
  EXPECT_EQ(processors->AwakeFor(At(1000)), Millis(0));
  processors->Work(At(1000));
  processors->Work(At(1010));
  EXPECT_EQ(processors->AwakeFor(At(1015)), Millis(15));
  processors->Tend(At(1020));
  processors->Tend(At(1031));
  EXPECT_EQ(processors->AwakeFor(At(4000)), Millis(31));
  processors->Work(At(5000));
  EXPECT_EQ(processors->AwakeFor(At(5002)), Millis(33));
}

TEST(AwakeProcessorsTest, ADeviceThatIsNotThereIsNamedWithWhatToDo) {
  const auto opened = AwakeProcessors::Open(Millis(20), "/nowhere/cpu_dma_latency");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr("/nowhere/cpu_dma_latency: No such file"));
  EXPECT_THAT(opened.status().message(), HasSubstr("leave processors.awake at 0s"));
}

TEST(AwakeProcessorsTest, OffTheDeviceIsNotLookedAt) {
  const auto opened = AwakeProcessors::Open(Millis(0), "/nowhere/cpu_dma_latency");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(*opened, nullptr);
}

TEST(AwakeProcessorsTest, WhatTheKernelDoesNotTakeIsNotAskedForAgain) {
  const auto opened = AwakeProcessors::Open(Millis(20), "/dev/full");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  log::Start({});
  ::testing::internal::CaptureStderr();
  (*opened)->Work(At(1000));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("device=/dev/full detail=\"No space left on device\""));
  EXPECT_FALSE((*opened)->awake());
  (*opened)->Work(At(1001));
  EXPECT_EQ((*opened)->wake(), std::nullopt);
}

class ServerProcessorsTest : public ServerTest {
 protected:
  void Begin(Millis idle) {
    processors_ = asked_.Open(idle);
    options_.processors = processors_.get();
    Start();
  }

  void AwaitAsked(size_t times, int turns_max = 5000) {
    for (int turns = engine_.turns; asked_.latencies().size() < times; turns = engine_.turns) {
      ASSERT_LT(turns, turns_max);  // counted before the look
      std::this_thread::yield();
    }
  }

  const AskedOf asked_;
  std::unique_ptr<AwakeProcessors> processors_;
};

TEST_F(ServerProcessorsTest, ARequestKeepsThemAwakeAndQuietLetsThemSleep) {
  Begin(Millis(1));
  EXPECT_THAT(asked_.latencies(), IsEmpty());
  PassATurn();
  AwaitAsked(2);  // nothing but the server's own timer ends its wait
  EXPECT_TRUE(Stop().ok());
  // On a busy machine they fall asleep more than once.
  EXPECT_EQ(asked_.latencies()[0], kAwake);
  EXPECT_EQ(asked_.latencies()[1], kAny);
}

TEST_F(ServerProcessorsTest, AWaitingWorkerDoesNotKeepThemAwake) {
  engine_.is_awaited = true;
  engine_.until_next_event = std::chrono::hours(1);
  Begin(Millis(5));  // several of the clock's, which must not hide that one was added
  PassATurn();
  AwaitAsked(2, 30);
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(asked_.latencies()[1], kAny);
}

TEST_F(ServerProcessorsTest, TheyAreAwakeBeforeAnAwaitedJobIsDue) {
  engine_.is_awaited = true;
  engine_.until_next_event = Micros(20);
  Begin(std::chrono::hours(1));
  AwaitAsked(1);  // nobody has asked for anything
  EXPECT_TRUE(Stop().ok());
  EXPECT_THAT(asked_.latencies(), ElementsAre(kAwake));
}

TEST_F(ServerProcessorsTest, P1OneClientIsAnsweredWhenItsCommitIsDurableAndNotYetReadable) {
  store_.hold_durable = true;
  Begin(std::chrono::hours(1));
  SocketClient client(path_);
  // The core thread writes small batches once it has seen some, and the disk was quick.
  for (int round = 1; round <= 1000 && !store_.holding && !HasFailure(); ++round) {
    client.Send(kEnqueue);
    const std::string commit = "Delayd-Commit: " + std::to_string(round) + "\r\n";
    EXPECT_THAT(client.ReadUntil(commit), HasSubstr(commit));
  }
  EXPECT_TRUE(store_.holding) << "answered only when the commit had returned";
  store_.let_go.set_value();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(engine_.committed, engine_.sealed);
}

}  // namespace
}  // namespace delayd

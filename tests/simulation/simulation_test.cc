#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

namespace delayd::simulation {
namespace {

Result RunSeed(uint64_t seed) {
  return Simulation{Choices(seed)}.Run(300);
}

TEST(SimulationTest, TheSameSeedGivesTheSameRunToTheBit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Result first = RunSeed(seed);
    const Result second = RunSeed(seed);
    EXPECT_EQ(first.violation, "");
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    EXPECT_EQ(first.simulated, second.simulated);
    EXPECT_NE(first.trace, RunSeed(seed + 1000).trace);
  }
}

TEST(SimulationTest, EveryFaultAndEveryCommandOccurs) {
  Result total;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    total.Add(RunSeed(seed));
  }
  for (size_t kind = 0; kind < total.of_kind.size(); ++kind) {
    EXPECT_GT(total.of_kind[kind], 3U) << "commands at place " << kind << " of engine::Command";
  }
  EXPECT_GT(total.kills, 50U);
  EXPECT_GT(total.reboots, 20U);
  EXPECT_GT(total.clock_steps, 20U);
  EXPECT_GT(total.suspends, 20U);
  EXPECT_GT(total.edits, 10U);
  EXPECT_GT(total.unfinished, 20U);
  for (const char* reason : {"disk_nearly_full", "draining", "queue_full", "user_full"}) {
    EXPECT_GT(total.refusals[reason], 10U) << reason;
  }
  EXPECT_GT(total.hand_outs, 500U);
  EXPECT_GT(total.commits, 500U);
}

TEST(SimulationTest, BytesOfAFuzzerDriveARunToo) {
  const std::string bytes(4000, '\x5a');
  const Result result = Simulation{Choices(bytes)}.Run(1000);
  EXPECT_EQ(result.violation, "");
  EXPECT_GT(result.step, 10U);
}

}  // namespace
}  // namespace delayd::simulation

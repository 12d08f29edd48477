// P1: what was acknowledged is there after a power cut, whatever happened to the rest.
#include <cstdint>

#include <gtest/gtest.h>

#include "power_loss_scenario.h"
#include "tests/support/seed.h"

namespace delayd::storage {
namespace {

using Tail = test::PowerLoss::Tail;

// A sanitizer needs ten times as long for each.
#if defined(DELAYD_SANITIZED)
constexpr uint64_t kCuts = 12;
#else
constexpr uint64_t kCuts = 40;
#endif

class PowerLossTest : public ::testing::TestWithParam<Tail> {};

TEST_P(PowerLossTest, P1AcknowledgedCommitSurvives) {
  uint64_t acknowledged = 0;
  uint64_t bytes_lost = 0;
  for (uint64_t cut = 0; cut < kCuts; ++cut) {
    const uint64_t seed = test::Seed() + cut;
    const PowerLossResult result = LosePower(seed, GetParam());
    EXPECT_TRUE(result.reopened.ok()) << result.reopened.message() << ", seed " << seed;
    EXPECT_EQ(result.missing, 0U) << result.report << ", seed " << seed;
    EXPECT_EQ(result.torn, 0U) << "P8: a batch is all or nothing, seed " << seed;
    EXPECT_EQ(result.phantoms, 0U) << "seed " << seed;
    acknowledged += result.acknowledged;
    bytes_lost += result.bytes_lost;
  }
  RecordProperty("acknowledged", static_cast<int>(acknowledged));
  std::printf("%llu power cuts, %llu acknowledged batches, %llu unsynced bytes lost\n",
              static_cast<unsigned long long>(kCuts),         // NOLINT(google-runtime-int)
              static_cast<unsigned long long>(acknowledged),  // NOLINT(google-runtime-int)
              static_cast<unsigned long long>(bytes_lost));   // NOLINT(google-runtime-int)
  EXPECT_GT(acknowledged, kCuts) << "the cuts came too early to prove anything";
}

INSTANTIATE_TEST_SUITE_P(Tails,
                         PowerLossTest,
                         ::testing::Values(Tail::kGone, Tail::kPrefixKept, Tail::kZeroedSectors),
                         [](const auto& param_info) {
                           switch (param_info.param) {
                             case Tail::kGone:
                               return "Gone";
                             case Tail::kPrefixKept:
                               return "PrefixKept";
                             case Tail::kZeroedSectors:
                               return "ZeroedSectors";
                           }
                           return "?";
                         });

}  // namespace
}  // namespace delayd::storage

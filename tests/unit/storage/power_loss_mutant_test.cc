// The proof that PowerLossTest can fail: the same cuts on a store that answers before the fsync.
#include <cstdint>

#include <gtest/gtest.h>

#include "power_loss_scenario.h"
#include "tests/support/seed.h"

namespace delayd::storage {
namespace {

using Tail = test::PowerLoss::Tail;

TEST(PowerLossMutantTest, P1CommitWithoutSyncIsCaught) {
  for (const Tail tail : {Tail::kGone, Tail::kPrefixKept, Tail::kZeroedSectors}) {
    uint64_t caught = 0;
    for (uint64_t cut = 0; cut < 10; ++cut) {
      const PowerLossResult result = LosePower(test::Seed() + cut, tail);
      caught += result.missing > 0 || !result.reopened.ok() ? 1U : 0U;
    }
    EXPECT_GT(caught, 0U) << "a store that does not sync passed as durable";
  }
}

}  // namespace
}  // namespace delayd::storage

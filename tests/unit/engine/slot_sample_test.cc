// How much of a large table is looked at, and how well that tells where to cut it.
#include "daemon/engine/slot_sample.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

constexpr Slot kTenMillion = 10'000'000;

std::vector<Slot> Sampled(Slot slots, size_t fewest) {
  std::vector<Slot> seen;
  ForEachSampled(
      0, slots, SampleStride(slots, fewest), [&seen](Slot slot) { seen.push_back(slot); });
  return seen;
}

TEST(SlotSampleTest, P10TenMillionJobsAreNotLookedAtInOneTurn) {
  const size_t looks = Sampled(kTenMillion, kTenMillion).size();
  EXPECT_GE(looks, kSampledSlots / 2);
  EXPECT_LE(looks, kSampledSlots + kSampledSlots / 8);
}

TEST(SlotSampleTest, P10EachQueueThatIsCutIsSeen) {
  for (const size_t queues : {size_t{10}, size_t{1000}, size_t{10'000}}) {
    std::vector<size_t> seen(queues);
    const std::vector<Slot> sample = Sampled(kTenMillion, kTenMillion / queues);
    EXPECT_LE(sample.size(), std::max(kSampledSlots, queues * kSampledOfEach) * 9 / 8);
    for (const Slot slot : sample) {
      ++seen[slot % queues];  // their jobs came in turns
    }
    EXPECT_GE(*std::ranges::min_element(seen), kSampledOfEach / 4) << queues;
  }
}

TEST(SlotSampleTest, P10WhereAQuarterIsToGoTheCutIsMetToOneInAHundred) {
  std::vector<Slot> sample = Sampled(kTenMillion, kTenMillion);
  for (Slot& slot : sample) {  // the jobs in any order
    slot = static_cast<Slot>(uint64_t{slot} * 7'654'321 % kTenMillion);
  }
  std::ranges::sort(sample);
  const Slot cut = sample[sample.size() * 3 / 4];
  EXPECT_NEAR(cut, 0.75 * kTenMillion, 0.01 * kTenMillion);
}

TEST(SlotSampleTest, ASmallTableIsLookedAtAsAWhole) {
  EXPECT_EQ(Sampled(2 * kSampledSlots - 1, kTenMillion).size(), 2 * kSampledSlots - 1);
  EXPECT_EQ(Sampled(kTenMillion / 100, 100).size(), kTenMillion / 100);
}

}  // namespace
}  // namespace delayd::engine

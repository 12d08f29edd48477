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

// Three million jobs of one queue, each between those of 20,000 others.
TEST(SlotSampleTest, P10OfALargeQueueNoMoreIsKeptInMindThanItsCutNeeds) {
  constexpr Slot kSlots = 8'000'000;
  constexpr size_t kLarge = 3'000'000;
  constexpr size_t kOthers = 20'000;
  constexpr size_t kSmall = (kSlots - kLarge) / kOthers;
  const size_t stride = SampleStride(kSlots, kSmall);
  std::vector<Slot> large;
  std::vector<size_t> small(kOthers);
  ForEachSampled(0, kSlots, stride, [&](Slot slot) {
    const bool is_large = slot % 8 < 3;
    const size_t jobs = is_large ? kLarge : kSmall;
    if (!IsNoted(slot, LooksPerNote(kSlots, stride, jobs))) {
      return;
    }
    is_large ? large.push_back(slot) : static_cast<void>(++small[slot / 8 % kOthers]);
  });
  EXPECT_GE(large.size(), kSampledSlots * 7 / 8);
  EXPECT_LE(large.size(), kSampledSlots * 9 / 8);
  const Slot cut = large[large.size() * 3 / 4];  // they are in order
  EXPECT_NEAR(cut, 0.75 * kSlots, 0.02 * kSlots);
  EXPECT_GE(*std::ranges::min_element(small), kSampledOfEach / 4);
  EXPECT_LE(*std::ranges::max_element(small), kSampledOfEach * 2);
  EXPECT_EQ(LooksPerNote(2 * kSampledSlots - 1, 1, kSampledSlots), 1U);
}

TEST(SlotSampleTest, ASmallTableIsLookedAtAsAWhole) {
  EXPECT_EQ(Sampled(2 * kSampledSlots - 1, kTenMillion).size(), 2 * kSampledSlots - 1);
  EXPECT_EQ(Sampled(kTenMillion / 100, 100).size(), kTenMillion / 100);
}

}  // namespace
}  // namespace delayd::engine

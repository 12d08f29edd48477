// The parts of the wheel that are worth a claim of their own: slab, slot set, chunk lists, array.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/random_source.h"
#include "wheel/entry_list.h"
#include "wheel/segmented_array.h"
#include "wheel/slot_set.h"
#include "wheel/timer_slab.h"

namespace delayd::wheel {
namespace {

TEST(TimerSlabTest, NodeWhoseGenerationsAreUsedUpIsRetired) {
  constexpr uint64_t kLast = (uint64_t{1} << (64 - kGenerationShift)) - 1;
  TimerSlab slab(false);
  const uint32_t index = slab.Allocate();
  slab.NodeAt(index).word = Refiled(kLast << kGenerationShift, NodeKind::kNear, 0);
  const TimerHandle last = MakeHandle(index, kLast);
  EXPECT_TRUE(slab.Contains(last));
  slab.Free(index);
  EXPECT_FALSE(slab.Contains(last));
  EXPECT_EQ(slab.retired_count(), 1U);
  EXPECT_NE(slab.Allocate(), index);
}

TEST(TimerSlabTest, IndicesAreReusedAcrossSegments) {
  constexpr uint32_t kCount = 300'000;
  TimerSlab slab(true);
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(slab.Allocate(), i);
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    slab.Free(i);
  }
  std::set<uint32_t> seen;
  for (uint32_t i = 0; i < kCount; ++i) {
    seen.insert(slab.Allocate());
  }
  EXPECT_EQ(seen.size(), kCount);
  EXPECT_EQ(slab.high_water(), kCount);
}

TEST(SlotSetTest, SaysWhatASetSays) {
  RandomSource random(test::Seed());
  SCOPED_TRACE("DELAYD_SEED=" + std::to_string(test::Seed()));
  for (const size_t size : {size_t{2}, size_t{64}, size_t{128}, size_t{8192}, size_t{1} << 17}) {
    SlotSet slots(size);
    std::set<size_t> naive;
    for (uint64_t i = 0; i < Scaled(200'000); ++i) {
      const size_t slot = random.Below(size);
      if (random.OneIn(2) && naive.size() < 40) {
        slots.Insert(slot);
        naive.insert(slot);
      } else if (const auto found = naive.lower_bound(slot); found != naive.end()) {
        slots.Erase(*found);
        naive.erase(found);
      }
      const size_t from = random.Below(size);
      const auto after = naive.lower_bound(from);
      ASSERT_EQ(slots.FindAtOrAfter(from), after == naive.end() ? SlotSet::kNone : *after);
      if (naive.empty()) {
        ASSERT_EQ(slots.DistanceToNext(from), SlotSet::kNone);
      } else {
        const size_t next = after == naive.end() ? *naive.begin() + size : *after;
        ASSERT_EQ(slots.DistanceToNext(from), next - from);
      }
    }
  }
}

std::vector<uint32_t> Contents(const ChunkPool& pool, const EntryList& list) {
  std::vector<uint32_t> indices;
  for (uint32_t number = list.head; number != 0; number = pool.NextOf(list, number)) {
    const auto chunk = pool.ChunkAt(list, number);
    for (uint32_t i = 0; i < chunk.count; ++i) {
      indices.push_back(chunk.entries[i].index);
    }
  }
  return indices;
}

TEST(ChunkPoolTest, SpliceKeepsTheOrderWhateverTheFill) {
  for (uint32_t front_count = 0; front_count < 70; ++front_count) {
    for (const uint32_t rest_count : {0U, 1U, 31U, 40U, 62U}) {
      ChunkPool pool;
      EntryList front;
      EntryList rest;
      std::vector<uint32_t> expected;
      uint32_t chunks = 0;
      for (uint32_t i = 0; i < front_count; ++i) {
        chunks += pool.Append(front, {i, 0}) ? 1U : 0U;
        expected.push_back(i);
      }
      for (uint32_t i = 0; i < rest_count; ++i) {
        chunks += pool.Append(rest, {1000 + i, 0}) ? 1U : 0U;
        expected.push_back(1000 + i);
      }
      pool.SpliceFront(front, rest);
      chunks += pool.Append(rest, {5000, 0}) ? 1U : 0U;
      expected.push_back(5000);
      EXPECT_EQ(Contents(pool, rest), expected);
      EXPECT_TRUE(front.empty());
      while (!rest.empty()) {
        const uint32_t chunk = rest.head;
        pool.PopFront(rest);
        pool.Free(chunk);
        --chunks;
      }
      EXPECT_EQ(chunks, 0U);
    }
  }
}

// A heap whose length goes to and fro there would allocate and free with each job.
TEST(SegmentedArrayTest, ToAndFroAtTheBeginOfASegmentAllocatesNothing) {
  for (const size_t begin : {2U, 6U, 14U, 65'534U}) {
    SegmentedArray<size_t> array;
    for (size_t i = 0; i <= begin; ++i) {
      array.push_back(i);
    }
    const size_t* const place = &array.back();
    const size_t room = array.capacity();
    for (int round = 0; round < 3; ++round) {
      array.pop_back();
      EXPECT_EQ(array.capacity(), room);
      EXPECT_EQ(array.back(), begin - 1);
      array.push_back(begin);
      EXPECT_EQ(&array.back(), place);
    }
    array.Truncate(1);
    EXPECT_LE(array.capacity(), 6U);
    EXPECT_EQ(array.back(), 0U);
  }
}

}  // namespace
}  // namespace delayd::wheel

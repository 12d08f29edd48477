// The heap against a sorted set, and its claims one by one.
#include "wheel/indexed_priority_queue.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/wheel/random_source.h"

namespace delayd::wheel {
namespace {

TEST(IndexedPriorityQueueTest, PopsInOrder) {
  IndexedPriorityQueue<int> queue;
  for (const int value : {5, 3, 9, 1, 7, 1}) {
    queue.Add(value);
  }
  std::vector<int> popped;
  while (!queue.empty()) {
    popped.push_back(queue.Pop());
  }
  EXPECT_EQ(popped, (std::vector<int>{1, 1, 3, 5, 7, 9}));
}

TEST(IndexedPriorityQueueTest, HandleFindsItsElementWhereverItMoved) {
  IndexedPriorityQueue<int> queue;
  std::vector<IndexedPriorityQueue<int>::Handle> handles;
  for (int value = 100; value > 0; --value) {
    handles.push_back(queue.Add(value));
  }
  EXPECT_EQ(queue.Get(handles[0]), 100);
  EXPECT_EQ(queue.Get(handles[99]), 1);
  queue.Update(handles[0], -5);
  EXPECT_EQ(queue.Top(), -5);
  EXPECT_EQ(queue.TopHandle(), handles[0]);
  EXPECT_EQ(queue.Remove(handles[0]), -5);
  EXPECT_EQ(queue.Top(), 1);
}

TEST(IndexedPriorityQueueTest, HoldsWhatCanOnlyBeMoved) {
  struct Less {
    bool operator()(const std::unique_ptr<int>& a, const std::unique_ptr<int>& b) const {
      return *a < *b;
    }
  };

  IndexedPriorityQueue<std::unique_ptr<int>, Less> queue;
  queue.Add(std::make_unique<int>(2));
  const auto handle = queue.Add(std::make_unique<int>(3));
  queue.Modify(handle, [](std::unique_ptr<int>& value) { *value = 1; });
  EXPECT_EQ(*queue.Pop(), 1);
  EXPECT_EQ(*queue.Pop(), 2);
}

TEST(IndexedPriorityQueueDeathTest, UnknownHandleStopsTheProgram) {
  IndexedPriorityQueue<int> queue;
  const auto handle = queue.Add(1);
  queue.Add(2);
  queue.Remove(handle);
  EXPECT_DEATH(queue.Remove(handle), "check failed");
  EXPECT_DEATH(queue.Get(77), "check failed");
}

TEST(IndexedPriorityQueueTest, ElementsThatComeInOrderAreFoundAfterManyWereRemoved) {
  IndexedPriorityQueue<int> queue;
  std::vector<IndexedPriorityQueue<int>::Handle> handles;
  for (int value = 0; value < 1000; ++value) {
    handles.push_back(queue.Add(value));
  }
  const auto late = queue.Add(-1);
  // Every second one, from both ends and from the middle.
  for (size_t i = 0; i < 1000; i += 2) {
    EXPECT_EQ(queue.Remove(handles[i * 7 % 1000]), static_cast<int>(i * 7 % 1000));
    queue.CheckInvariants();
  }
  queue.Update(handles[1], 2000);
  queue.Update(handles[999], 0);
  EXPECT_EQ(queue.Get(handles[1]), 2000);
  EXPECT_EQ(queue.Remove(late), -1);
  EXPECT_EQ(queue.Pop(), 0);
  for (int value = 3; value < 999; value += 2) {
    EXPECT_EQ(queue.Pop(), value);
    queue.CheckInvariants();
  }
  EXPECT_EQ(queue.Pop(), 2000);
  EXPECT_TRUE(queue.empty());
}

TEST(IndexedPriorityQueueTest, SaysWhatASortedSetSays) {
  using Element = std::pair<uint64_t, uint64_t>;  // key, id: all different
  RandomSource random(test::Seed());
  SCOPED_TRACE("DELAYD_SEED=" + std::to_string(test::Seed()));
  IndexedPriorityQueue<Element> queue;
  std::set<Element> naive;
  std::vector<std::pair<uint32_t, Element>> known;
  uint64_t id = 0;
  for (uint64_t i = 0; i < Scaled(1'000'000); ++i) {
    const uint64_t dice = random.Below(100);
    if (known.empty() || dice < 40) {
      // In rising order at times, and then not.
      const uint64_t key = i / 5000 % 2 == 0 ? random.Below(1000) : i % 5000 + random.Below(3);
      const Element element{key, id++};
      known.emplace_back(queue.Add(element), element);
      naive.insert(element);
    } else if (dice < 60) {
      const size_t at = random.Below(known.size());
      ASSERT_EQ(queue.Remove(known[at].first), known[at].second);
      naive.erase(known[at].second);
      known[at] = known.back();
      known.pop_back();
    } else if (dice < 80) {
      auto& [handle, element] = known[random.Below(known.size())];
      naive.erase(element);
      element.first = random.Below(1000);
      naive.insert(element);
      queue.Update(handle, element);
    } else if (dice < 99) {
      ASSERT_EQ(queue.Top(), *naive.begin());
    } else {
      ASSERT_EQ(queue.Pop(), *naive.begin());
      std::erase_if(known, [&](const auto& each) { return each.second == *naive.begin(); });
      naive.erase(naive.begin());
    }
    ASSERT_EQ(queue.size(), naive.size());
    if (random.OneIn(10'000)) {
      queue.CheckInvariants();
    }
    if (queue.size() > 2000) {
      queue.Clear();
      naive.clear();
      known.clear();
    }
  }
}

TEST(IndexedPriorityQueueTest, OneThatWasLongAndIsEmptyHoldsNoMemory) {
  for (const bool rising : {true, false}) {
    IndexedPriorityQueue<uint64_t> queue;
    for (int round = 0; round < 2; ++round) {
      for (uint64_t i = 0; i < 100'000; ++i) {
        queue.Add(rising ? i : 100'000 - i);
      }
      EXPECT_GT(queue.memory_bytes(), 1'000'000U);
      for (uint64_t i = 0; i < 100'000; ++i) {
        ASSERT_EQ(queue.Pop(), rising ? i : i + 1);
      }
      queue.CheckInvariants();
      EXPECT_LT(queue.memory_bytes(), 100'000U);
    }
  }
}

// An element that counts the moves of all.
struct Counted {
  static inline size_t moves = 0;

  explicit Counted(int by) : value(by) {}

  Counted(Counted&& other) noexcept : value(other.value) { ++moves; }

  Counted& operator=(Counted&& other) noexcept {
    value = other.value;
    ++moves;
    return *this;
  }

  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() = default;

  friend bool operator<(const Counted& a, const Counted& b) { return a.value < b.value; }

  int value;
};

TEST(IndexedPriorityQueueTest, NoAddMovesMoreThanItsOwnWay) {
  for (const bool rising : {true, false}) {
    IndexedPriorityQueue<Counted> queue;
    size_t most = 0;
    for (int i = 0; i < 100'000; ++i) {
      const size_t before = Counted::moves;
      queue.Add(Counted(rising ? i : -i));
      most = std::max(most, Counted::moves - before);
    }
    EXPECT_LT(most, 50U);
    queue.CheckInvariants();
    for (int i = 0; i < 100'000; ++i) {
      ASSERT_EQ(queue.Pop().value, rising ? i : i - 99'999);
    }
  }
}

}  // namespace
}  // namespace delayd::wheel

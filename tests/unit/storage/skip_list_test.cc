// The skip list against std::map, and its readers beside its writer.
#include "storage/skip_list.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage/keys.h"
#include "tests/support/seed.h"

namespace delayd::storage {
namespace {

// Newest first within a key, as memtables have it.
struct Key {
  std::string user_key;
  uint64_t tag = 0;

  bool operator<(const Key& other) const {
    return user_key != other.user_key ? user_key < other.user_key : tag > other.tag;
  }

  bool operator==(const Key&) const = default;
};

std::string InternalKey(const Key& key) {
  std::string bytes = key.user_key;
  bytes.append(reinterpret_cast<const char*>(&key.tag), sizeof key.tag);
  return bytes;
}

std::string Entry(const Key& key) {
  std::string bytes;
  for (size_t length = key.user_key.size() + sizeof key.tag;; length >>= 7U) {
    if (length < 0x80) {
      bytes.push_back(static_cast<char>(length));
      break;
    }
    bytes.push_back(static_cast<char>(length | 0x80U));
  }
  return bytes + InternalKey(key) + "value";
}

std::optional<Key> KeyOf(const SkipList::Node* node) {
  if (node == nullptr) {
    return std::nullopt;
  }
  const auto target = SkipList::Target::OfEntry(HeadKind::kFirstBytes, SkipList::EntryOf(node));
  return Key{.user_key = std::string(target.user_key), .tag = target.tag};
}

std::vector<Key> Forward(const SkipList& list) {
  std::vector<Key> keys;
  for (const SkipList::Node* at = list.First(); at != nullptr; at = SkipList::Next(at)) {
    keys.push_back(*KeyOf(at));
  }
  return keys;
}

// Keys that differ early, late, in their length only, and by zeroes, which a head pads with.
Key RandomKey(std::mt19937_64& random) {
  static const std::string kBegins[] = {"",
                                        "a",
                                        std::string(3, '\0'),
                                        "0123456789abcde",
                                        "0123456789abcdef",
                                        std::string(16, '\0'),
                                        std::string(300, 'k'),
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
  Key key{.user_key = kBegins[random() % std::size(kBegins)], .tag = random() % 4};
  for (size_t more = random() % 4; more > 0; --more) {
    key.user_key.push_back(static_cast<char>(random() % 3 == 0 ? 0 : random() % 256));
  }
  return key;
}

class SkipListTest : public ::testing::TestWithParam<HeadKind> {
 protected:
  bool Insert(const Key& key) {
    entries_.push_back(Entry(key));
    return list_.Insert(entries_.back().c_str());
  }

  // The keys of `batch` from `begin` on, or what will not come.
  void Expect(const std::vector<Key>& batch, size_t begin, size_t count) {
    std::vector<KeyHead> heads;
    for (size_t i = begin; i < std::min(batch.size(), begin + count); ++i) {
      heads.push_back(HeadOf(GetParam(), batch[i].user_key));
      heads.back().high += i % 7 == 6 ? 1 : 0;
    }
    list_.Expect(heads);
  }

  std::deque<std::string> entries_;
  SkipList list_{GetParam()};
};

TEST_P(SkipListTest, AnEmptyListHasNothing) {
  EXPECT_EQ(list_.First(), nullptr);
  EXPECT_EQ(list_.Last(), nullptr);
  const std::string key = InternalKey({.user_key = "k", .tag = 1});
  EXPECT_EQ(list_.FirstNotBefore(SkipList::Target::OfInternalKey(GetParam(), key)), nullptr);
  EXPECT_EQ(list_.LastBefore(SkipList::Target::OfInternalKey(GetParam(), key)), nullptr);
}

TEST_P(SkipListTest, TheNewestOfAKeyComesFirst) {
  EXPECT_TRUE(Insert({.user_key = "k", .tag = 1}));
  EXPECT_TRUE(Insert({.user_key = "k", .tag = 3}));
  EXPECT_TRUE(Insert({.user_key = "k", .tag = 2}));
  EXPECT_FALSE(Insert({.user_key = "k", .tag = 2})) << "it is there already";
  EXPECT_EQ(Forward(list_), (std::vector<Key>{{"k", 3}, {"k", 2}, {"k", 1}}));
}

TEST_P(SkipListTest, IsAnOrderedMap) {
  std::mt19937_64 random(test::Seed());
  std::map<Key, int> model;
  for (int round = 0; round < 200; ++round) {
    // As batches are: some sorted, some not.
    std::vector<Key> batch(1 + random() % 60);
    std::generate(batch.begin(), batch.end(), [&] { return RandomKey(random); });
    if (random() % 2 == 0) {
      std::sort(batch.begin(), batch.end());
    }
    const bool announced = random() % 2 == 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const Key& key = batch[i];
      if (announced && !list_.expects()) {
        Expect(batch, i, 1 + random() % SkipList::kExpectedMax);
      }
      ASSERT_EQ(Insert(key), model.emplace(key, 0).second);
    }
    const Key key = RandomKey(random);
    const std::string internal_key = InternalKey(key);
    const auto target = SkipList::Target::OfInternalKey(GetParam(), internal_key);
    const auto at = model.lower_bound(key);
    ASSERT_EQ(KeyOf(list_.FirstNotBefore(target)),
              at == model.end() ? std::nullopt : std::optional(at->first));
    ASSERT_EQ(KeyOf(list_.LastBefore(target)),
              at == model.begin() ? std::nullopt : std::optional(std::prev(at)->first));
    ASSERT_EQ(KeyOf(list_.First()), model.begin()->first);
    const SkipList::Node* node = list_.First();
    ASSERT_EQ(SkipList::NextOfMany(node), SkipList::Next(node));
    ASSERT_EQ(KeyOf(list_.Last()), std::prev(model.end())->first);
  }
  std::vector<Key> all;
  for (const auto& [key, nothing] : model) {
    all.push_back(key);
  }
  EXPECT_EQ(Forward(list_), all);
}

TEST_P(SkipListTest, SaysWhatItTakes) {
  const size_t empty = list_.MemoryUsage();
  for (uint64_t i = 0; i < 20'000; ++i) {
    Insert({.user_key = std::to_string(i), .tag = i});
  }
  const double each = static_cast<double>(list_.MemoryUsage() - empty) / 20'000;
  EXPECT_GT(each, 34);
  EXPECT_LT(each, 52);  // a chunk that has just begun included
}

TEST_P(SkipListTest, ReadersSeeAllThatWasThereInOrder) {
  constexpr uint64_t kEntries = 20'000;
  std::mt19937_64 random(test::Seed());
  std::vector<Key> keys(kEntries);
  for (uint64_t i = 0; i < kEntries; ++i) {
    keys[i] = {.user_key = std::to_string(random()), .tag = i};
    entries_.push_back(Entry(keys[i]));
  }
  std::atomic<uint64_t> inserted{0};
  std::atomic<int> failures{0};
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 own(seed);
    uint64_t before = 0;
    while ((before = inserted.load(std::memory_order_acquire)) < kEntries) {
      uint64_t seen = 0;
      std::optional<Key> last;
      for (const SkipList::Node* at = list_.First(); at != nullptr; at = SkipList::Next(at)) {
        Key key = *KeyOf(at);
        failures += last && !(*last < key) ? 1 : 0;
        seen += key.tag < before ? 1 : 0;
        last = std::move(key);
      }
      failures += seen == before ? 0 : 1;
      if (before > 0) {
        const Key& key = keys[own() % before];
        const std::string internal_key = InternalKey(key);
        const auto target = SkipList::Target::OfInternalKey(GetParam(), internal_key);
        failures += KeyOf(list_.FirstNotBefore(target)) == key ? 0 : 1;
      }
    }
  };
  {
    std::jthread one(read, 1);
    std::jthread two(read, 2);
    for (uint64_t i = 0; i < kEntries; ++i) {
      list_.Insert(entries_[i].c_str());
      inserted.store(i + 1, std::memory_order_release);
    }
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Forward(list_).size(), kEntries);
}

// As a worker reads the next row of a backlog while the rows before it are being deleted: each new
// entry stands right before the one that is looked for.
TEST_P(SkipListTest, AReaderFindsItsEntryWhileOthersAreInsertedBeforeIt) {
  constexpr uint64_t kEntries = 100'000;
  const auto key = [](uint64_t number) {
    std::string bytes(20, '\0');
    for (size_t i = 0; i < sizeof number; ++i) {
      bytes[bytes.size() - 1 - i] = static_cast<char>(number >> (8 * i) & 0xff);
    }
    return Key{.user_key = bytes, .tag = 1};
  };
  std::vector<std::string> entries;
  for (uint64_t i = 0; i <= kEntries; ++i) {
    entries.push_back(Entry(key(i)));
  }
  list_.Insert(entries.back().c_str());
  const auto target = SkipList::Target::OfEntry(GetParam(), entries.back().c_str());
  std::atomic<bool> done = false;
  std::atomic<uint64_t> wrong = 0;
  {
    std::jthread reader([&] {
      while (!done.load(std::memory_order_acquire)) {
        const SkipList::Node* found = list_.FirstNotBefore(target);
        wrong += found != nullptr && SkipList::EntryOf(found) == entries.back().c_str() ? 0 : 1;
      }
    });
    for (uint64_t i = 0; i < kEntries; ++i) {
      list_.Insert(entries[i].c_str());
    }
    done.store(true, std::memory_order_release);
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(OfEachKind,
                         SkipListTest,
                         ::testing::Values(HeadKind::kFirstBytes, HeadKind::kQueueTimeId));

TEST(KeyHeadTest, HeadsThatDifferSortAsTheirKeysDo) {
  std::mt19937_64 random(test::Seed());
  const auto some_key = [&random] {
    std::string key(random() % 24, '\0');
    for (char& byte : key) {
      constexpr std::array<char, 3> kBytes = {'\0', '\1', '\xff'};
      byte = kBytes[random() % kBytes.size()];
    }
    return key;
  };
  for (int i = 0; i < 200'000; ++i) {
    std::string less = some_key();
    // Often with a long piece in common.
    std::string more = less.substr(0, random() % (less.size() + 1)) + some_key();
    if (more < less) {
      std::swap(less, more);
    }
    for (const HeadKind kind : {HeadKind::kFirstBytes, HeadKind::kQueueTimeId}) {
      ASSERT_LE(HeadOf(kind, less), HeadOf(kind, more))
          << ::testing::PrintToString(less) << " and " << ::testing::PrintToString(more);
    }
  }
}

TEST(KeyHeadTest, JobsOfOneQueueAndMillisecondDiffer) {
  const WallTime due = WallFromMillis(1'700'000'000'000);
  const auto head = [&](uint64_t id) {
    return HeadOf(HeadKindOf(Table::kByQueue), ByQueueKey(QueueId{3}, due, JobId{id}));
  };
  EXPECT_LT(head(1), head(2));
  EXPECT_LT(head(0xFFFFFFFF), head(0x100000000));
}

}  // namespace
}  // namespace delayd::storage

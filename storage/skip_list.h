// storage/skip_list.h — entries of a memtable in their order: a skip list with one writer and many
// readers. Private to the room.
//
// What:    an entry is what RocksDB makes of a row: length of the internal key as a varint, user
//          key, 8 bytes of sequence number and kind, then the value. The order is that of the keys
//          byte by byte, and of one key the newest first. Nodes lie apart from the entries, close
//          together, and hold the head of their key as numbers (key_head.h): a search seldom
//          touches an entry, and what it touches stays in the processor's caches. A row that
//          follows the last one inserted is found from there: batches come sorted (write_order.h).
//          When the next rows are known, their places are looked for side by side: a search alone
//          waits for memory at each step.
// Errors:  none; the memory of entries comes from the caller.
// Threads: one inserts; any number read at the same time, without locks. Nothing is ever removed.
// Cost:    O(log n) expected, less for neighbours; 24 bytes and 1.33 pointers an entry.
// Source:  Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees" (1990), with his
//          search finger ("A Skip List Cookbook"); searches side by side: Chen, Ailamaki, Gibbons,
//          Mowry, "Improving Hash Join Performance through Prefetching" (2004), group prefetching.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "storage/key_head.h"

namespace delayd::storage {

class SkipList {
 public:
  struct Node;

  // What an entry is found by: a user key and the tag behind it.
  struct Target {
    KeyHead head;
    std::string_view user_key;
    uint64_t tag = 0;

    bool operator==(const Target&) const = default;
    // Of a user key and its tag in one piece, and of an entry, whose length comes first.
    static Target OfInternalKey(HeadKind kind, std::string_view internal_key);
    static Target OfEntry(HeadKind kind, const char* entry);
  };

  explicit SkipList(HeadKind kind);
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  static constexpr size_t kExpectedMax = 32;

  // The next entries to be inserted begin so, in this order, at most kExpectedMax of them. Whether
  // they do come, and in order, changes nothing but the time it takes.
  void Expect(std::span<const KeyHead> heads);

  // There are expected ones yet to come.
  bool expects() const { return next_expected_ < expected_; }

  HeadKind kind() const { return kind_; }

  // `entry` stays where it is as long as the list. False when there is one with its key and tag.
  bool Insert(const char* entry);

  // Each nullptr when there is none.
  const Node* First() const;
  const Node* Last() const;
  static const Node* Next(const Node* node);
  // The same, for a caller that will go on: the entry after the next and the node behind it are
  // fetched meanwhile, since neighbours in the list are not neighbours in memory.
  static const Node* NextOfMany(const Node* node);
  const Node* FirstNotBefore(const Target& target) const;
  const Node* LastBefore(const Target& target) const;

  static const char* EntryOf(const Node* node);

  struct Count {
    uint64_t entries = 0;
    uint64_t deletes = 0;  // of these
  };

  // About how many entries there are with from <= target < to: exact when they are few, else right
  // to a tenth. A walk over some hundred nodes.
  Count EstimateCount(const Target& from, const Target& to) const;

  // What the nodes take. From any thread.
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMaxHeight = 12;  // with one in four: 16 million entries

  // Where an entry belongs on each level: behind prev, before next.
  struct Finger {
    std::array<Node*, kMaxHeight> prev{};
    std::array<Node*, kMaxHeight> next{};
  };

  // A place that was looked up before the entries in front of it were inserted: on each level
  // something before the target, and not far.
  struct Place {
    KeyHead head;
    int height = 0;
    std::array<Node*, kMaxHeight> prev{};
  };

  // The last that was seen before the target, or the head, and the first that was seen not to be.
  // By now others may stand between the two, so that neither is found from the other.
  struct Neighbours {
    const Node* before;
    const Node* behind;  // nullptr: none
  };

  bool IsBefore(const Node* node, const Target& target) const;
  Neighbours Around(const Target& target) const;
  int NewHeight();
  Node* NewNode(int height);
  // The lowest level whose neighbours still embrace the target; above it they all do.
  int FirstLevelAround(const Target& target, int height) const;
  void MoveFinger(const Target& target, int height);
  void MoveFingerFrom(const Place& place, const Target& target, int height);
  // The lowest level on which no node stands between any of the heads.
  int FirstLevelAroundAll(std::span<const KeyHead> heads, int height) const;
  static void Fetch(const Node* node, int level);
  void LookUpOnLevel(int level);
  const Place* ExpectedPlace(const KeyHead& head);

  const HeadKind kind_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the last chunk
  size_t free_bytes_ = 0;
  std::atomic<size_t> memory_{0};
  Node* head_;
  std::atomic<int> height_{1};
  Finger finger_;
  std::array<Place, kExpectedMax> places_{};
  size_t expected_ = 0;
  size_t next_expected_ = 0;
  bool looked_up_ = false;                 // else the expected ones are found from the finger
  uint64_t random_ = 0x9E3779B97F4A7C15U;  // the same in every run: so are the lists
};

}  // namespace delayd::storage

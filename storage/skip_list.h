// storage/skip_list.h — keeps the entries of a memtable in order: a skip list with one writer and
// many readers. Private to the room.
//
// What:    an entry is what RocksDB makes of a row: the length of the internal key as a varint, the
//          user key, 8 bytes of sequence number and kind, then the value. The order is by key, byte
//          by byte, and within a key newest first. Nodes are stored apart from the entries, close
//          together, and hold the head of their key as numbers (key_head.h): a search seldom
//          touches an entry, and what it touches stays in the processor's caches. A row that
//          follows the last one inserted is found from there: batches come sorted (write_order.h).
//          If the next rows are known, their places are searched for side by side, since a single
//          search waits for memory at each step.
// Errors:  none; the memory of entries comes from the caller.
// Threads: one thread inserts; any number read at the same time, without locks. Nothing is ever
//          removed.
// Cost:    O(log n) expected, less for neighbours; 24 bytes and 1.33 pointers per entry.
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

  // What an entry is searched by: a user key and the tag behind it.
  struct Target {
    KeyHead head;
    std::string_view user_key;
    uint64_t tag = 0;

    bool operator==(const Target&) const = default;
    // From a user key followed by its tag, and from an entry, which begins with the length.
    static Target OfInternalKey(HeadKind kind, std::string_view internal_key);
    static Target OfEntry(HeadKind kind, const char* entry);
  };

  explicit SkipList(HeadKind kind);
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  static constexpr size_t kExpectedMax = 32;

  // Announces the key heads of the next entries, in this order, at most kExpectedMax of them.
  // Whether they really come, and in that order, affects only the time it takes.
  void Expect(std::span<const KeyHead> heads);

  // Are there announced entries yet to come?
  bool expects() const { return next_expected_ < expected_; }

  HeadKind kind() const { return kind_; }

  // `entry` must stay in place as long as the list lives. False if an entry with its key and tag
  // exists.
  bool Insert(const char* entry);

  // Each returns nullptr if there is none.
  const Node* First() const;
  const Node* Last() const;
  static const Node* Next(const Node* node);
  // The same, for a caller that will go on: prefetches the entry after the next one and the node
  // behind it, since neighbours in the list are not neighbours in memory.
  static const Node* NextOfMany(const Node* node);
  const Node* FirstNotBefore(const Target& target) const;
  const Node* LastBefore(const Target& target) const;

  static const char* EntryOf(const Node* node);

  struct Count {
    uint64_t entries = 0;
    uint64_t deletes = 0;  // among these
  };

  // About how many entries there are with from <= target < to: exact if they are few, otherwise
  // right to a tenth. Walks over some hundred nodes.
  Count EstimateCount(const Target& from, const Target& to) const;

  // The memory that the nodes take. From any thread.
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMaxHeight = 12;  // at one in four per level: 16 million entries

  // Where an entry belongs on each level: after prev, before next.
  struct Finger {
    std::array<Node*, kMaxHeight> prev{};
    std::array<Node*, kMaxHeight> next{};
  };

  // A place that was searched for before the entries ahead of it were inserted: on each level a
  // node before the target, and close to it.
  struct Place {
    KeyHead head;
    int height = 0;
    std::array<Node*, kMaxHeight> prev{};
  };

  // The last node seen before the target, or the head, and the first node seen that is not before
  // it. Other nodes may have been inserted between the two since, so neither can be found from the
  // other.
  struct Neighbours {
    const Node* before;
    const Node* behind;  // nullptr: none
  };

  bool IsBefore(const Node* node, const Target& target) const;
  Neighbours Around(const Target& target) const;
  int NewHeight();
  Node* NewNode(int height);
  // The lowest level on which the finger's neighbours still enclose the target; on all levels above
  // they do too.
  int FirstLevelAround(const Target& target, int height) const;
  void MoveFinger(const Target& target, int height);
  void MoveFingerFrom(const Place& place, const Target& target, int height);
  // The lowest level on which the finger's neighbours enclose all the heads.
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
  bool looked_up_ = false;  // otherwise announced entries are searched for from the finger
  uint64_t random_ = 0x9E3779B97F4A7C15U;  // a fixed seed: the lists are the same in every run
};

}  // namespace delayd::storage

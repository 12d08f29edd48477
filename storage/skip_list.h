// storage/skip_list.h — entries of a memtable in their order: a skip list with one writer and many
// readers. Private to the room.
//
// What:    an entry is what RocksDB makes of a row: length of the internal key as a varint, user
//          key, 8 bytes of sequence number and kind, then the value. The order is that of the keys
//          byte by byte, and of one key the newest first. Nodes lie apart from the entries, close
//          together, and hold the first 16 bytes of their key as numbers: a search seldom touches
//          an entry, and what it touches stays in the processor's caches. A row that follows the
//          last one inserted is found from there: batches come sorted (write_order.h).
// Errors:  none; the memory of entries comes from the caller.
// Threads: one inserts; any number read at the same time, without locks. Nothing is ever removed.
// Cost:    O(log n) expected, less for neighbours; 24 bytes and 1.33 pointers an entry.
// Source:  Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees" (1990), with his
// search
//          finger ("A Skip List Cookbook").
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace delayd::storage {

class SkipList {
 public:
  struct Node;

  // The first 16 bytes of a key as numbers; what a short key lacks counts as zero. Where two heads
  // differ the keys differ the same way.
  struct Head {
    uint64_t high = 0;
    uint64_t low = 0;
    auto operator<=>(const Head&) const = default;
  };

  // What an entry is found by: a user key and the tag behind it.
  struct Target {
    Head head;
    std::string_view user_key;
    uint64_t tag = 0;

    bool operator==(const Target&) const = default;
    // Of a user key and its tag in one piece, and of an entry, whose length comes first.
    static Target OfInternalKey(std::string_view internal_key);
    static Target OfEntry(const char* entry);
  };

  SkipList();
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  // `entry` stays where it is as long as the list. False when there is one with its key and tag.
  bool Insert(const char* entry);

  // Each nullptr when there is none.
  const Node* First() const;
  const Node* Last() const;
  static const Node* Next(const Node* node);
  // The same, for one who goes on: the next entry and the node behind it are fetched meanwhile, as
  // neighbours in the list are none in memory.
  static const Node* NextOfMany(const Node* node);
  const Node* FirstNotBefore(const Target& target) const;
  const Node* LastBefore(const Target& target) const;

  static const char* EntryOf(const Node* node);

  // What the nodes take. From any thread.
  size_t MemoryUsage() const { return memory_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMaxHeight = 12;  // with one in four: 16 million entries

  // Where an entry belongs on each level: behind prev, before next.
  struct Finger {
    std::array<Node*, kMaxHeight> prev{};
    std::array<Node*, kMaxHeight> next{};
  };

  static bool IsBefore(const Node* node, const Target& target);
  int NewHeight();
  Node* NewNode(int height);
  // The lowest level whose neighbours still embrace the target; above it they all do.
  int FirstLevelAround(const Target& target, int height) const;
  void MoveFinger(const Target& target, int height);

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the last chunk
  size_t free_bytes_ = 0;
  std::atomic<size_t> memory_{0};
  Node* head_;
  std::atomic<int> height_{1};
  Finger finger_;
  uint64_t random_ = 0x9E3779B97F4A7C15U;  // the same in every run: so are the lists
};

}  // namespace delayd::storage

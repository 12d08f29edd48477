#include "storage/skip_list.h"

#include <bit>
#include <cstring>
#include <new>

#include "base/check.h"

namespace delayd::storage {

// In memory: this, then the links of the levels 1 and up.
struct SkipList::Node {
  Head head;
  const char* entry = nullptr;
  std::atomic<Node*> links[1];

  std::atomic<Node*>& link(int level) { return (&links[0])[level]; }

  const std::atomic<Node*>& link(int level) const { return (&links[0])[level]; }

  Node* next(int level) const { return link(level).load(std::memory_order_acquire); }
};

namespace {

constexpr size_t kTagBytes = 8;
constexpr size_t kFirstChunkBytes = size_t{1} << 12U;  // most tables have few rows
constexpr size_t kChunkBytes = size_t{1} << 18U;

static_assert(std::endian::native == std::endian::little);

SkipList::Head HeadOf(std::string_view key) {
  uint64_t halves[2] = {};
  if (key.size() >= sizeof halves) {
    std::memcpy(&halves, key.data(), sizeof halves);
  } else {
    std::memcpy(&halves, key.data(), key.size());
  }
  return {.high = __builtin_bswap64(halves[0]), .low = __builtin_bswap64(halves[1])};
}

uint64_t TagAt(const char* at) {
  uint64_t tag = 0;
  std::memcpy(&tag, at, sizeof tag);  // RocksDB writes it little-endian
  return tag;
}

}  // namespace

SkipList::Target SkipList::Target::OfInternalKey(std::string_view internal_key) {
  DELAYD_CHECK(internal_key.size() >= kTagBytes);
  const std::string_view user_key = internal_key.substr(0, internal_key.size() - kTagBytes);
  return {.head = HeadOf(user_key),
          .user_key = user_key,
          .tag = TagAt(internal_key.data() + user_key.size())};
}

SkipList::Target SkipList::Target::OfEntry(const char* entry) {
  size_t length = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*entry++);
    length |= size_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      break;
    }
  }
  return OfInternalKey({entry, length});
}

SkipList::SkipList() : head_(NewNode(kMaxHeight)) {
  finger_.prev.fill(head_);
}

int SkipList::NewHeight() {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  // Two zero bits in a row are one in four.
  const int zeros = __builtin_ctzll(random_ | (uint64_t{1} << 63U));
  const int height = 1 + zeros / 2;
  return height < kMaxHeight ? height : kMaxHeight;
}

SkipList::Node* SkipList::NewNode(int height) {
  const size_t bytes = sizeof(Node) + sizeof(Node*) * static_cast<size_t>(height - 1);
  if (free_bytes_ < bytes) {
    free_bytes_ = chunks_.empty() ? kFirstChunkBytes : kChunkBytes;
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(free_bytes_));
    free_ = chunks_.back().get();
    memory_.fetch_add(free_bytes_, std::memory_order_relaxed);
  }
  Node* node = new (free_) Node;
  free_ += bytes;
  free_bytes_ -= bytes;
  for (int level = 0; level < height; ++level) {
    new (&node->link(level)) std::atomic<Node*>(nullptr);
  }
  return node;
}

const char* SkipList::EntryOf(const Node* node) {
  return node->entry;
}

bool SkipList::IsBefore(const Node* node, const Target& target) {
  if (node->head.high != target.head.high) {
    return node->head.high < target.head.high;
  }
  if (node->head.low != target.head.low) {
    return node->head.low < target.head.low;
  }
  const Target entry = Target::OfEntry(node->entry);
  const int order = entry.user_key.compare(target.user_key);
  return order != 0 ? order < 0 : entry.tag > target.tag;
}

int SkipList::FirstLevelAround(const Target& target, int height) const {
  int level = 0;
  for (; level < height; ++level) {
    const auto i = static_cast<size_t>(level);
    const Node* prev = finger_.prev[i];
    const Node* next = finger_.next[i];
    if ((prev == head_ || IsBefore(prev, target)) && (next == nullptr || !IsBefore(next, target))) {
      break;
    }
  }
  return level;
}

void SkipList::MoveFinger(const Target& target, int height) {
  int level = FirstLevelAround(target, height);
  Node* prev = level < height ? finger_.prev[static_cast<size_t>(level)] : head_;
  const Node* behind = nullptr;  // known to be behind the target: often the next one of two levels
  while (level-- > 0) {
    Node* next = prev->next(level);
    while (next != behind) {
      __builtin_prefetch(next->link(level).load(std::memory_order_relaxed));
      if (!IsBefore(next, target)) {
        break;
      }
      prev = next;
      next = prev->next(level);
    }
    behind = next;
    finger_.prev[static_cast<size_t>(level)] = prev;
    finger_.next[static_cast<size_t>(level)] = next;
  }
}

bool SkipList::Insert(const char* entry) {
  const Target target = Target::OfEntry(entry);
  const int node_height = NewHeight();
  int height = height_.load(std::memory_order_relaxed);
  if (node_height > height) {
    // Up there the finger still points to nothing but the head.
    height = node_height;
    // A reader that sees the new height before the links finds nothing on those levels.
    height_.store(height, std::memory_order_relaxed);
  }
  MoveFinger(target, height);
  if (const Node* next = finger_.next[0];
      next != nullptr && next->head == target.head && Target::OfEntry(next->entry) == target) {
    return false;
  }
  Node* node = NewNode(node_height);
  node->head = target.head;
  node->entry = entry;
  for (int level = 0; level < node_height; ++level) {
    const auto i = static_cast<size_t>(level);
    node->link(level).store(finger_.next[i], std::memory_order_relaxed);
    finger_.prev[i]->link(level).store(node, std::memory_order_release);
    finger_.prev[i] = node;
  }
  return true;
}

const SkipList::Node* SkipList::First() const {
  return head_->next(0);
}

const SkipList::Node* SkipList::Next(const Node* node) {
  return node->next(0);
}

const SkipList::Node* SkipList::NextOfMany(const Node* node) {
  constexpr size_t kCacheLineBytes = 64;
  const Node* next = Next(node);
  const Node* second = next == nullptr ? nullptr : Next(next);
  if (second != nullptr) {
    __builtin_prefetch(second->entry);
    __builtin_prefetch(second->entry + kCacheLineBytes);
    __builtin_prefetch(Next(second));
  }
  return next;
}

const SkipList::Node* SkipList::Last() const {
  const Node* at = head_;
  for (int level = height_.load(std::memory_order_relaxed); level-- > 0;) {
    while (const Node* next = at->next(level)) {
      at = next;
    }
  }
  return at == head_ ? nullptr : at;
}

const SkipList::Node* SkipList::LastBefore(const Target& target) const {
  const Node* at = head_;
  const Node* behind = nullptr;
  for (int level = height_.load(std::memory_order_relaxed); level-- > 0;) {
    const Node* next = at->next(level);
    for (; next != behind && IsBefore(next, target); next = at->next(level)) {
      at = next;
    }
    behind = next;
  }
  return at == head_ ? nullptr : at;
}

const SkipList::Node* SkipList::FirstNotBefore(const Target& target) const {
  const Node* before = LastBefore(target);
  return before == nullptr ? First() : Next(before);
}

}  // namespace delayd::storage

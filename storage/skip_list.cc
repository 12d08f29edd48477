#include "storage/skip_list.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"

namespace delayd::storage {

// In memory it is followed by the links of levels 1 and up.
struct SkipList::Node {
  KeyHead head;
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

uint64_t TagAt(const char* at) {
  uint64_t tag = 0;
  std::memcpy(&tag, at, sizeof tag);  // RocksDB writes it little-endian
  return tag;
}

// In RocksDB's tags the kind is the lowest byte: 0 deletes, 1 puts.
bool IsDelete(uint64_t tag) {
  return (tag & 0xFFU) == 0;
}

}  // namespace

SkipList::Target SkipList::Target::OfInternalKey(HeadKind kind, std::string_view internal_key) {
  DELAYD_CHECK(internal_key.size() >= kTagBytes);
  const std::string_view user_key = internal_key.substr(0, internal_key.size() - kTagBytes);
  return {.head = HeadOf(kind, user_key),
          .user_key = user_key,
          .tag = TagAt(internal_key.data() + user_key.size())};
}

SkipList::Target SkipList::Target::OfEntry(HeadKind kind, const char* entry) {
  size_t length = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*entry++);
    length |= size_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      break;
    }
  }
  return OfInternalKey(kind, {entry, length});
}

SkipList::SkipList(HeadKind kind) : kind_(kind), head_(NewNode(kMaxHeight)) {
  finger_.prev.fill(head_);
}

int SkipList::NewHeight() {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  // Two zero bits in a row have a probability of one in four.
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

bool SkipList::IsBefore(const Node* node, const Target& target) const {
  if (node->head.high != target.head.high) {
    return node->head.high < target.head.high;
  }
  if (node->head.low != target.head.low) {
    return node->head.low < target.head.low;
  }
  const Target entry = Target::OfEntry(kind_, node->entry);
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
  const Node* behind = nullptr;  // known to be behind the target; often the next node on two levels
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

int SkipList::FirstLevelAroundAll(std::span<const KeyHead> heads, int height) const {
  int level = 0;
  for (; level < height; ++level) {
    const auto i = static_cast<size_t>(level);
    const Node* prev = finger_.prev[i];
    const Node* next = finger_.next[i];
    if ((prev == head_ || prev->head < heads.front()) &&
        (next == nullptr || next->head >= heads.back())) {
      break;
    }
  }
  return level;
}

void SkipList::Expect(std::span<const KeyHead> heads) {
  constexpr size_t kWorthIt = 4;
  DELAYD_CHECK(heads.size() <= kExpectedMax);
  expected_ = heads.size();
  next_expected_ = 0;
  const int height = height_.load(std::memory_order_relaxed);
  const bool is_worth_it = heads.size() >= kWorthIt && std::ranges::is_sorted(heads);
  const int around = is_worth_it ? FirstLevelAroundAll(heads, height) : 0;
  looked_up_ = around > 0;
  if (!looked_up_) {
    return;
  }
  for (size_t i = 0; i < expected_; ++i) {
    places_[i].head = heads[i];
    places_[i].height = height;
    places_[i].prev = finger_.prev;  // right from level `around` up
  }
  for (int level = around; level-- > 0;) {
    LookUpOnLevel(level);
  }
}

void SkipList::Fetch(const Node* node, int level) {
  if (node != nullptr) {
    __builtin_prefetch(node);
    __builtin_prefetch(&node->link(level));
  }
}

// Advances the searches by one step each, in turn: the node that one needs next is fetched while
// the others proceed.
void SkipList::LookUpOnLevel(int level) {
  const auto i = static_cast<size_t>(level);
  std::array<Node*, kExpectedMax> next;
  std::array<uint8_t, kExpectedMax> at_work;
  for (size_t n = 0; n < expected_; ++n) {
    Node* prev = level + 1 < places_[n].height ? places_[n].prev[i + 1] : head_;
    places_[n].prev[i] = prev;
    next[n] = prev->next(level);
    Fetch(next[n], level);
    at_work[n] = static_cast<uint8_t>(n);
  }
  for (size_t count = expected_; count > 0;) {
    size_t left = 0;
    for (size_t k = 0; k < count; ++k) {
      const size_t n = at_work[k];
      if (next[n] == nullptr || next[n]->head >= places_[n].head) {
        continue;
      }
      places_[n].prev[i] = next[n];
      next[n] = next[n]->next(level);
      Fetch(next[n], level);
      at_work[left++] = at_work[k];
    }
    count = left;
  }
}

// nullptr: its place was not looked up.
const SkipList::Place* SkipList::ExpectedPlace(const KeyHead& head) {
  if (!expects()) {
    return nullptr;
  }
  const Place& place = places_[next_expected_++];
  return looked_up_ && place.head == head ? &place : nullptr;
}

// Nodes are never removed, so what was before the target still is.
void SkipList::MoveFingerFrom(const Place& place, const Target& target, int height) {
  Node* above = nullptr;  // beyond the place, which is before all rows with the target's head
  for (int level = height; level-- > 0;) {
    const auto i = static_cast<size_t>(level);
    Node* prev = above != nullptr ? above : level < place.height ? place.prev[i] : head_;
    Node* next = prev->next(level);
    while (next != nullptr && IsBefore(next, target)) {
      prev = above = next;
      next = prev->next(level);
    }
    finger_.prev[i] = prev;
    finger_.next[i] = next;
  }
}

bool SkipList::Insert(const char* entry) {
  const Target target = Target::OfEntry(kind_, entry);
  const int node_height = NewHeight();
  int height = height_.load(std::memory_order_relaxed);
  if (node_height > height) {
    // On the new levels the finger still points to the head.
    height = node_height;
    // A reader that sees the new height before the links finds nothing on those levels.
    height_.store(height, std::memory_order_relaxed);
  }
  if (const Place* place = ExpectedPlace(target.head)) {
    MoveFingerFrom(*place, target, height);
  } else {
    MoveFinger(target, height);
  }
  if (const Node* next = finger_.next[0]; next != nullptr && next->head == target.head &&
                                          Target::OfEntry(kind_, next->entry) == target) {
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

SkipList::Neighbours SkipList::Around(const Target& target) const {
  const Node* at = head_;
  const Node* behind = nullptr;
  for (int level = height_.load(std::memory_order_relaxed); level-- > 0;) {
    const Node* next = at->next(level);
    for (; next != behind && IsBefore(next, target); next = at->next(level)) {
      at = next;
    }
    behind = next;
  }
  return {.before = at, .behind = behind};
}

// One node in four is on the next level too: the nodes of the highest level that has enough of them
// in the range stand for the others.
SkipList::Count SkipList::EstimateCount(const Target& from, const Target& to) const {
  constexpr uint64_t kEnough = 512;
  const Node* at = head_;
  for (int level = height_.load(std::memory_order_relaxed); level-- > 0;) {
    const Node* next = at->next(level);
    for (; next != nullptr && IsBefore(next, from); next = at->next(level)) {
      at = next;
    }
    Count count;
    for (; next != nullptr && IsBefore(next, to); next = next->next(level)) {
      ++count.entries;
      count.deletes += IsDelete(Target::OfEntry(kind_, next->entry).tag) ? 1U : 0U;
    }
    if (count.entries >= kEnough || level == 0) {
      const auto doublings = 2U * static_cast<unsigned>(level);
      return {.entries = count.entries << doublings, .deletes = count.deletes << doublings};
    }
  }
  return {};
}

const SkipList::Node* SkipList::LastBefore(const Target& target) const {
  const Node* before = Around(target).before;
  return before == head_ ? nullptr : before;
}

const SkipList::Node* SkipList::FirstNotBefore(const Target& target) const {
  return Around(target).behind;
}

}  // namespace delayd::storage

// storage/key_head.h — the first bytes of a key as numbers that sort as the key does. Private to
// the room.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "storage/batch.h"

namespace delayd::storage {

// 16 bytes. Where two heads of one kind differ, their keys differ in the same direction.
struct KeyHead {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const KeyHead&) const = default;
};

// Which bytes of a key its head is made of.
enum class HeadKind : uint8_t {
  kFirstBytes,  // what a short key lacks counts as zero
  // For keys of 20 bytes: 32, 64 and 64 bits (keys.h: a queue, a time, an id), of which the lowest
  // 32, 48 and 48 count. Heads made of the first bytes would be the same for all jobs of a queue
  // that share a millisecond.
  kQueueTimeId,
};

namespace key_head_internal {

template <size_t kBytes>
inline uint64_t BigEndian(const char* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes, kBytes);
  return __builtin_bswap64(number) >> (64 - 8 * kBytes);
}

inline KeyHead OfQueueTimeId(const char* key) {
  constexpr uint64_t kMax = (uint64_t{1} << 48U) - 1;
  const uint64_t time = std::min(BigEndian<8>(key + 4), kMax);
  // When the time is clamped, it no longer decides the order, so the id must not decide it either.
  const uint64_t id = time == kMax ? kMax : std::min(BigEndian<8>(key + 12), kMax);
  return {.high = BigEndian<4>(key) << 32U | time >> 16U, .low = time << 48U | id};
}

}  // namespace key_head_internal

inline KeyHead HeadOf(HeadKind kind, std::string_view key) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kBytes = 20;
  char padded[kBytes] = {};
  const char* bytes = key.data();
  if (key.size() < kBytes) {
    std::memcpy(padded, key.data(), key.size());
    bytes = padded;
  }
  using namespace key_head_internal;
  return kind == HeadKind::kQueueTimeId
             ? OfQueueTimeId(bytes)
             : KeyHead{.high = BigEndian<8>(bytes), .low = BigEndian<8>(bytes + 8)};
}

inline HeadKind HeadKindOf(Table table) {
  return table == Table::kByQueue || table == Table::kDead ? HeadKind::kQueueTimeId
                                                           : HeadKind::kFirstBytes;
}

}  // namespace delayd::storage

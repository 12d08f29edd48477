// storage/masked_crc.h — how RocksDB writes numbers and checksums in its files: little-endian, and
// with a crc masked if it may become part of the bytes of another crc. Private to the room.
#pragma once

#include <cstdint>
#include <string_view>

namespace delayd::storage {

// Up to four bytes.
inline uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

inline uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace delayd::storage

// base/coding.h — integers and bytes for keys, records and nothing else.
//
// Units:   big-endian throughout, so that keys sort as their numbers do.
// Errors:  a ByteReader that runs past its end says so through ok(); it never reads beyond.
// Threads: values.
// Source:  crc32c is the Castagnoli polynomial of RFC 3720, by the SSE 4.2 instruction where there
// is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayd {

void AppendU8(std::string* out, uint8_t value);
void AppendU16(std::string* out, uint16_t value);
void AppendU32(std::string* out, uint32_t value);
void AppendU64(std::string* out, uint64_t value);
void AppendVarint(std::string* out, uint64_t value);
// A varint length, then the bytes.
void AppendBytes(std::string* out, std::string_view bytes);

// Reads what the Append functions wrote. After the first failed read every further one fails and
// returns zero.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t U8();
  uint16_t U16();
  uint32_t U32();
  uint64_t U64();
  uint64_t Varint();
  std::string_view Bytes();
  std::string_view Raw(size_t count);

  bool ok() const { return ok_; }

  size_t position() const { return position_; }

  size_t remaining() const { return bytes_.size() - position_; }

  size_t size() const { return bytes_.size(); }

 private:
  uint64_t BigEndian(size_t count);

  std::string_view bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

// crc32c of `bytes`, continuing from the crc of what stood before them.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

// 64-bit FNV-1a: a fingerprint of content, not a defence against somebody who wants a collision.
uint64_t Fingerprint(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325);

}  // namespace delayd

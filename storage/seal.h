// storage/seal.h — the frame around every stored value: a version byte in front, a crc32c behind.
//
// The crc covers the table, the key and the bytes, so a value that turns up under another key or in
// another table is detected as surely as a flipped bit.
//
// Errors:  kDataLoss, naming the object and the byte.
// Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/status.h"
#include "storage/batch.h"

namespace delayd::storage {

inline constexpr uint8_t kRecordVersion = 1;
// Adds the fields that docs/storage-format.md lists under record version 2. A record is written in
// the oldest version that can hold it.
inline constexpr uint8_t kRecordVersion2 = 2;
inline constexpr uint8_t kRecordVersion3 = 3;
inline constexpr uint8_t kRecordVersion4 = 4;
inline constexpr uint8_t kRecordVersion5 = 5;

// The result is small for numbers near zero of either sign.
constexpr uint64_t ZigZag(int64_t number) {
  return (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
}

constexpr int64_t UnZigZag(uint64_t coded) {
  return static_cast<int64_t>((coded >> 1) ^ (~(coded & 1) + 1));
}

inline void AppendSigned(std::string* out, int64_t number) {
  AppendVarint(out, ZigZag(number));
}

// Appends the crc of the bytes in `out` from `begin` on.
void Seal(Table table, std::string_view key, size_t begin, std::string* out);

// Reads a sealed value field by field; what was read is valid only once Finish has returned Ok.
class SealReader {
 public:
  // `newest`: the latest version known for this kind of record.
  SealReader(Table table,
             std::string_view key,
             std::string_view value,
             uint8_t newest = kRecordVersion);

  uint8_t version() const { return version_; }

  uint8_t U8() { return reader_.U8(); }

  uint64_t U64() { return reader_.U64(); }

  uint32_t Varint32();

  uint64_t Varint() { return reader_.Varint(); }

  int64_t Signed() { return UnZigZag(reader_.Varint()); }

  std::string_view Bytes() { return reader_.Bytes(); }

  // Everything up to the crc.
  std::string_view Rest() { return reader_.Raw(reader_.remaining()); }

  // Marks the record as bad: a field holds what no writer of this version writes.
  void Reject() { rejected_ = true; }

  // `subject()` names the object in the message ("job 42"); it is called only if there is a
  // message.
  template <typename Subject>
  Status Finish(const Subject& subject) const {
    return IsGood() ? OkStatus() : Failure(subject());
  }

  bool KnowsVersion() const { return version_ >= kRecordVersion && version_ <= newest_; }

  // For a reader that wants the first fields only: they were well formed; the checksum is not
  // verified.
  Status FinishHead() const;

 private:
  bool IsGood() const;
  Status Failure(const std::string& who) const;

  Table table_;
  std::string_view key_;
  std::string_view body_;
  uint32_t stored_crc_ = 0;
  size_t value_size_;
  uint8_t version_ = 0;
  uint8_t newest_;
  bool rejected_ = false;
  ByteReader reader_;
};

}  // namespace delayd::storage

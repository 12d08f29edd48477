#include "storage/seal.h"

#include <cstdio>
#include <limits>

namespace delayd::storage {
namespace {

constexpr size_t kCrcBytes = 4;

uint32_t SealCrc(Table table, std::string_view key, std::string_view body) {
  // The length keeps a byte from moving between key and value unnoticed.
  const char head[] = {static_cast<char>(table), static_cast<char>(key.size())};
  return Crc32c(body, Crc32c(key, Crc32c({head, sizeof head})));
}

std::string Hex(uint32_t number) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", number);
  return text;
}

}  // namespace

void Seal(Table table, std::string_view key, size_t begin, std::string* out) {
  AppendU32(out, SealCrc(table, key, std::string_view(*out).substr(begin)));
}

SealReader::SealReader(Table table, std::string_view key, std::string_view value, uint8_t newest)
    : table_(table),
      key_(key),
      body_(value.substr(0, value.size() < kCrcBytes ? 0 : value.size() - kCrcBytes)),
      value_size_(value.size()),
      newest_(newest),
      reader_(body_) {
  stored_crc_ = ByteReader(value.substr(body_.size())).U32();
  version_ = reader_.U8();
}

uint32_t SealReader::Varint32() {
  const uint64_t number = reader_.Varint();
  if (number > std::numeric_limits<uint32_t>::max()) {
    rejected_ = true;
  }
  return static_cast<uint32_t>(number);
}

bool SealReader::IsGood() const {
  return !body_.empty() && SealCrc(table_, key_, body_) == stored_crc_ && KnowsVersion() &&
         reader_.ok() && !rejected_ && reader_.remaining() == 0;
}

Status SealReader::Failure(const std::string& who) const {
  const std::string where =
      std::to_string(reader_.position()) + " of " + std::to_string(value_size_);
  const uint32_t crc = SealCrc(table_, key_, body_);
  if (body_.empty() || crc != stored_crc_) {
    if (body_.empty() || !reader_.ok()) {
      return DataLoss(who + ": record truncated at byte " + where);
    }
    return DataLoss(who + ": record checksum is " + Hex(crc) + " and should be " +
                    Hex(stored_crc_));
  }
  if (!KnowsVersion()) {
    return DataLoss(who + ": record version " + std::to_string(version_) +
                    " is not known to this program; run the newer delayd that wrote it");
  }
  return DataLoss(who + ": record malformed at byte " + where);
}

Status SealReader::FinishHead() const {
  if (!KnowsVersion() || !reader_.ok() || rejected_) {
    return DataLoss("record head malformed at byte " + std::to_string(reader_.position()) + " of " +
                    std::to_string(value_size_));
  }
  return OkStatus();
}

}  // namespace delayd::storage

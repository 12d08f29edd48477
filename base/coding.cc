#include "base/coding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace delayd {
namespace {

constexpr size_t kFingerprintDigits = 16;
constexpr uint32_t kCastagnoliReflected = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoliReflected : 0);
    }
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();

uint32_t CrcPortable(const unsigned char* data, size_t size, uint32_t crc) {
  for (size_t i = 0; i < size; ++i) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ data[i]) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t CrcSse42(const unsigned char* data,
                                                    size_t size,
                                                    uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 8; size -= 8, data += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; --size, ++data) {
    crc = __builtin_ia32_crc32qi(crc, *data);
  }
  return crc;
}
#elif defined(__aarch64__)
// In assembler, since compilers have no common name for an instruction that only some processors
// have.
uint32_t CrcArmv8(const unsigned char* data, size_t size, uint32_t crc) {
  for (; size >= 8; size -= 8, data += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  }
  for (; size > 0; --size, ++data) {
    asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(uint32_t{*data}));
  }
  return crc;
}
#endif

uint64_t AddToHash(uint64_t hash, char c) {
  return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

using FingerprintLanes = std::array<FingerprintPart*, 4>;

// Adds as many bytes of each as the shortest has. The compiler keeps variables in registers, but
// not an array.
void AddWhatAllHave(const FingerprintLanes& lanes) {
  const auto [a, b, c, d] = lanes;
  const size_t size =
      std::min({a->bytes.size(), b->bytes.size(), c->bytes.size(), d->bytes.size()});
  uint64_t hash_a = a->fingerprint;
  uint64_t hash_b = b->fingerprint;
  uint64_t hash_c = c->fingerprint;
  uint64_t hash_d = d->fingerprint;
  for (size_t i = 0; i < size; ++i) {
    hash_a = AddToHash(hash_a, a->bytes[i]);
    hash_b = AddToHash(hash_b, b->bytes[i]);
    hash_c = AddToHash(hash_c, c->bytes[i]);
    hash_d = AddToHash(hash_d, d->bytes[i]);
  }
  a->fingerprint = hash_a;
  b->fingerprint = hash_b;
  c->fingerprint = hash_c;
  d->fingerprint = hash_d;
  for (FingerprintPart* const lane : lanes) {
    lane->bytes.remove_prefix(size);
  }
}

}  // namespace

uint64_t ByteReader::Varint() {
  uint64_t value = 0;
  size_t at = position_;
  for (int shift = 0; ok_ && at < bytes_.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_[at++]);
    // Only one bit of the tenth byte fits.
    if (shift == 63 && byte > 1) {
      break;
    }
    value |= uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) {
      position_ = at;
      return value;
    }
  }
  position_ = at;
  ok_ = false;
  return 0;
}

std::string_view ByteReader::Bytes() {
  const uint64_t size = Varint();
  if (size > remaining()) {
    ok_ = false;
    return {};
  }
  return Raw(size);
}

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_sse42) {
    return ~CrcSse42(data, bytes.size(), ~crc);
  }
#elif defined(__aarch64__)
  static const bool has_crc = (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  if (has_crc) {
    return ~CrcArmv8(data, bytes.size(), ~crc);
  }
#endif
  return ~CrcPortable(data, bytes.size(), ~crc);
}

uint64_t Fingerprint(std::string_view bytes, uint64_t seed) {
  uint64_t hash = seed;
  for (const char c : bytes) {
    hash = AddToHash(hash, c);
  }
  return hash;
}

void AddToFingerprints(std::span<FingerprintPart> parts) {
  FingerprintLanes lanes{};
  auto next = parts.begin();
  bool is_full = parts.size() >= lanes.size();
  for (size_t i = 0; is_full && i < lanes.size(); ++i) {
    lanes[i] = &*next++;
  }
  while (is_full) {
    AddWhatAllHave(lanes);
    for (FingerprintPart*& lane : lanes) {
      if (lane->bytes.empty() && next != parts.end()) {
        lane = &*next++;
      } else {
        is_full = is_full && !lane->bytes.empty();
      }
    }
  }
  for (FingerprintPart& part : parts) {
    part.fingerprint = Fingerprint(std::exchange(part.bytes, {}), part.fingerprint);
  }
}

std::string FormatFingerprint(uint64_t fingerprint) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kFingerprintDigits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit) {
    *digit = kDigits[fingerprint & 15U];
    fingerprint >>= 4U;
  }
  return text;
}

std::optional<uint64_t> ParseFingerprint(std::string_view text) {
  uint64_t fingerprint = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, fingerprint, 16);
  const bool good = text.size() == kFingerprintDigits && error == std::errc() && stop == end;
  return good ? std::optional(fingerprint) : std::nullopt;
}

}  // namespace delayd

#include "protocol/base64.h"

#include <array>
#include <cstdint>

namespace delayd::protocol {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 0xff;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = MakeDigits();

Status MalformedBase64(const std::string& why) {
  return InvalidArgument("base64 text " + why + "; use the standard alphabet with '=' padding",
                         "invalid_base64");
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < group.size() ? static_cast<unsigned char>(group[j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= group.size() ? kAlphabet[bits >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return out;
}

StatusOr<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return MalformedBase64("has " + std::to_string(text.size()) +
                           " characters, not a multiple of 4");
  }
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
    ++padding;
  }
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const uint8_t digit = kDigits[static_cast<unsigned char>(text[i])];
    if (digit == kNoDigit) {
      return MalformedBase64("has a foreign character at position " + std::to_string(i + 1));
    }
    bits = bits << 6 | digit;
    if (i % 4 == 3) {
      out += static_cast<char>(bits >> 16);
      out += static_cast<char>(bits >> 8);
      out += static_cast<char>(bits);
      bits = 0;
    }
  }
  if (padding == 0) {
    return out;
  }
  // Two digits carry one byte and four spare bits, three digits two bytes and two spare bits.
  const uint32_t spare = padding == 2 ? 4 : 2;
  if ((bits & ((1U << spare) - 1)) != 0) {
    return MalformedBase64("ends in bits that belong to no byte");
  }
  bits >>= spare;
  if (padding == 1) {
    out += static_cast<char>(bits >> 8);
  }
  out += static_cast<char>(bits);
  return out;
}

}  // namespace delayd::protocol

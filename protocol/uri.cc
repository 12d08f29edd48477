#include "protocol/uri.h"

#include "protocol/nearest.h"

namespace delayd::protocol {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~").find(c) != std::string_view::npos;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHexDigits[byte >> 4U], kHexDigits[byte & 15U]};
    }
  }
  return out;
}

StatusOr<std::string> PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::string_view escape = text.substr(i, 3);
    const int high = escape.size() == 3 ? HexValue(escape[1]) : -1;
    const int low = escape.size() == 3 ? HexValue(escape[2]) : -1;
    if (high < 0 || low < 0) {
      return InvalidArgument("request target has the broken escape " + Quoted(escape) +
                                 "; write '%' and two hexadecimal digits, '%25' for '%' itself",
                             "invalid_target");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace delayd::protocol

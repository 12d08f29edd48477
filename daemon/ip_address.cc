#include "daemon/ip_address.h"

#include <array>

#include <arpa/inet.h>

namespace delayd {

std::optional<std::string> CanonicalAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> spelling{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), address.data()) == 1) {
      return ::inet_ntop(family, address.data(), spelling.data(), spelling.size());
    }
  }
  return std::nullopt;
}

std::string WithPort(const std::string& address, uint16_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

}  // namespace delayd

#include "cli/public_address.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace delayd::cli {
namespace {

struct Block4 {
  uint32_t first;
  unsigned prefix;
};

constexpr uint32_t Address4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr std::array kSpecial4{
    Block4{Address4(0, 0, 0, 0), 8},        // this network
    Block4{Address4(10, 0, 0, 0), 8},       // private
    Block4{Address4(100, 64, 0, 0), 10},    // shared by carriers
    Block4{Address4(127, 0, 0, 0), 8},      // loopback
    Block4{Address4(169, 254, 0, 0), 16},   // link-local, metadata services
    Block4{Address4(172, 16, 0, 0), 12},    // private
    Block4{Address4(192, 0, 0, 0), 24},     // protocol assignments
    Block4{Address4(192, 0, 2, 0), 24},     // documentation
    Block4{Address4(192, 88, 99, 0), 24},   // 6to4 relays
    Block4{Address4(192, 168, 0, 0), 16},   // private
    Block4{Address4(198, 18, 0, 0), 15},    // benchmarks
    Block4{Address4(198, 51, 100, 0), 24},  // documentation
    Block4{Address4(203, 0, 113, 0), 24},   // documentation
    Block4{Address4(224, 0, 0, 0), 3},      // multicast, reserved, broadcast
};

bool IsPublic4(uint32_t address) {
  return std::none_of(kSpecial4.begin(), kSpecial4.end(), [&](const Block4& block) {
    return (address ^ block.first) >> (32 - block.prefix) == 0;
  });
}

uint32_t Tail4(const std::array<uint8_t, 16>& bytes, size_t at) {
  return Address4(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
}

bool IsPublic6(const std::array<uint8_t, 16>& bytes) {
  const auto starts = [&](std::initializer_list<uint8_t> prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  if (starts({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) {
    return IsPublic4(Tail4(bytes, 12));  // ::ffff:a.b.c.d
  }
  if (starts({0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) {
    return IsPublic4(Tail4(bytes, 12));  // NAT64
  }
  if (starts({0x20, 0x02})) {
    return IsPublic4(Tail4(bytes, 2));  // 6to4
  }
  // Global unicast is 2000::/3. It includes documentation prefixes, and Teredo and the other
  // assignments of 2001::/23.
  const bool global = (bytes[0] & 0xe0) == 0x20;
  const bool assignments = starts({0x20, 0x01}) && bytes[2] < 2;
  const bool documentation = starts({0x20, 0x01, 0x0d, 0xb8}) || starts({0x3f, 0xff});
  return global && !assignments && !documentation;
}

}  // namespace

bool IsPublicAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return IsPublic4(ntohl(in.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    std::array<uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
    return IsPublic6(bytes);
  }
  return false;
}

}  // namespace delayd::cli

// daemon/ip_address.h — addresses as people write them.
//
// Errors:  text that is not a literal address yields none.
// Threads: pure functions.
// Source:  inet_pton(3); RFC 5952: "0:0:0:0:0:0:0:1" and "::1" are one address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace delayd {

// The canonical spelling of a literal address, without brackets; none: a host name or no address.
std::optional<std::string> CanonicalAddress(const std::string& text);

// "127.0.0.1:11380" or "[::1]:11380".
std::string WithPort(const std::string& address, uint16_t port);

}  // namespace delayd

// cli/public_address.h — which addresses a webhook may be sent to.
//
// What:    only addresses of the public internet: a job's target must not reach the machine itself,
//          its neighbours, or a cloud's metadata service (169.254.169.254).
// Threads: pure function.
// Source:  the IANA special-purpose registries for IPv4 and IPv6; RFC 6890.
#pragma once

#include <sys/socket.h>

namespace delayd::cli {

// False for loopback, private, link-local, shared, multicast, reserved and unspecified addresses,
// even mapped or embedded in IPv6, and for families other than IPv4 and IPv6.
bool IsPublicAddress(const sockaddr* address);

}  // namespace delayd::cli

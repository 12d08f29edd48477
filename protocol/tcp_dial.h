// protocol/tcp_dial.h — a TCP connection to whichever of a host's addresses accepts it first.
//
// What:    the next address is tried a quarter of a second after the one before it, or as soon as
//          that one fails, while those that have not answered stay pending. So one address that
//          drops packets does not keep the client from the host.
// Private to the client.
// Source:  RFC 8305, section 5, except for its order of address families: getaddrinfo has its own.
// Threads: no state.
#pragma once

#include <netdb.h>

#include "base/time.h"

namespace delayd::protocol {

// 0 and a connected socket, or an errno: ETIMEDOUT at the deadline or once `give_up_fd` is readable
// (-1: none).
int DialTcp(const addrinfo* addresses, BootTime deadline, int give_up_fd, int* socket_fd);

}  // namespace delayd::protocol

// protocol/tcp_dial.h — a TCP connection to whichever of a host's addresses takes it.
//
// What:    each address is tried a quarter of a second after the one before it, or at once when
//          that fails, beside those that have not answered: a host with one that drops packets is
//          reached by another.
// Private to the client.
// Source:  RFC 8305, section 5, without its order of families: getaddrinfo has one.
// Threads: no state.
#pragma once

#include <netdb.h>

#include "base/time.h"

namespace delayd::protocol {

// 0 and a connected socket, or an errno: ETIMEDOUT at the deadline, and when `give_up_fd` can be
// read (-1: none).
int DialTcp(const addrinfo* addresses, BootTime deadline, int give_up_fd, int* socket_fd);

}  // namespace delayd::protocol

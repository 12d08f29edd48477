// daemon/turned_away.h — clients that were turned away and not yet reported in the log.
//
// What:    a client that is turned away is told so. But if all of them are, for example after a
//          change of the tokens or the certificate, the operator would not notice.
// Threads: one owner.
// Cost:    a few copies for each client that is turned away.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "daemon/access.h"
#include "daemon/once_a_minute.h"

namespace delayd {

struct TurnedAway {
  void Note(const Peer& peer, std::string_view cause) {
    ++untold;
    last_peer = peer.known ? Access::UserOf(peer) : peer.address;
    last_cause = cause;
  }

  // True: log them now; then false for a minute.
  bool IsToBeTold(BootTime now) { return untold > 0 && told.IsDue(now); }

  uint64_t untold = 0;
  std::string last_peer;
  std::string last_cause;
  OnceAMinute told;
};

}  // namespace delayd

// daemon/turned_away.h — clients that were turned away, until the log tells of them.
//
// What:    who is turned away is told itself; but when all of them are, as behind a change of
//          tokens or of the certificate, nobody else sees it.
// Threads: one owner.
// Cost:    a few copies for each that is turned away.
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

  // True: the log is to be told of them now; asked again it is false for a minute.
  bool IsToBeTold(BootTime now) { return untold > 0 && told.IsDue(now); }

  uint64_t untold = 0;
  std::string last_peer;
  std::string last_cause;
  OnceAMinute told;
};

}  // namespace delayd

// daemon/turned_away.h — clients that were turned away, until the log tells of them.
//
// What:    who is turned away is told itself; but when all of them are, as behind a change of
//          tokens or of the certificate, nobody else sees it.
// Threads: one owner.
// Cost:    a few copies for each that is turned away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "daemon/access.h"

namespace delayd {

struct TurnedAway {
  void Note(const Peer& peer, std::string_view cause) {
    ++untold;
    last_peer = peer.known ? Access::UserOf(peer) : peer.address;
    last_cause = cause;
  }

  // Once a minute at most.
  bool IsToBeTold(BootTime now) const {
    return untold > 0 && (!told || now - *told >= std::chrono::minutes(1));
  }

  uint64_t untold = 0;
  std::string last_peer;
  std::string last_cause;
  std::optional<BootTime> told;
};

}  // namespace delayd

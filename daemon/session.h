// daemon/session.h — one client's conversation, whatever its protocol: bytes in, commands out;
// replies in, bytes out.
//
// What:    the server owns sockets, time and the engine; a session owns the order of requests and
//          answers and every rule of its protocol. Without a socket it runs in simulation, in tests
//          and under a fuzzer.
// Units:   base/time.h.
// Errors:  none come out: what a client does wrong is answered to the client.
// Threads: the core thread.
// Cost:    holds at most the input of one read, one request in parts, and bounded output: the
//          server stops reading while wants_input() is false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/access.h"
#include "daemon/admin.h"
#include "daemon/engine/command.h"

namespace delayd {

struct SessionRequest {
  uint64_t tag = 0;  // the session's own; comes back with the answer
  engine::Command command;
  // Set: this is for the store's operator, not for the engine, and `command` says nothing.
  std::optional<AdminCommand> admin = std::nullopt;
};

class Session {
 public:
  // What the client is doing, for the timeouts.
  enum class Phase : uint8_t {
    kIdle,     // between requests
    kHead,     // has begun a request
    kBody,     // is sending the body of a request
    kWorking,  // waits for us
  };

  virtual ~Session() = default;

  // Who is at the other end; told once, before anything is received.
  virtual void SetPeer(Peer /*peer*/) {}

  virtual void Receive(std::string_view bytes) = 0;
  // The next request that is complete. `now` must have been read after the last Receive: what a
  // client asks for relative to now counts from when it had asked.
  virtual std::optional<SessionRequest> Next(const Now& now) = 0;

  // The same while there is no room for changes: only what changes nothing, and hands out nothing.
  virtual std::optional<SessionRequest> NextRead(const Now& /*now*/) { return std::nullopt; }

  // Whether NextRead has nothing to give, whatever else arrives, until Next has given a request.
  virtual bool waits_for_room() const { return true; }

  virtual void Answer(uint64_t tag, const engine::Reply& reply) = 0;

  // To a request that was an admin command; sessions whose protocol has none are never asked.
  virtual void AnswerAdmin(uint64_t /*tag*/, const AdminAnswer& /*answer*/) { DELAYD_CHECK(false); }

  // No request will be taken any more; what is under way is answered. Idempotent.
  virtual void Stop() = 0;

  // The client sends nothing more; what it has sent is served.
  virtual void InputEnded() { Stop(); }

  // The client has said so within its protocol, and its socket may stay open.
  virtual bool input_ended() const { return false; }

  // The client has gone: the leases that are given back with it. Nobody is told how it went.
  virtual std::vector<LeaseToken> Leave() { return {}; }

  // The request that the client is sending is not waited for any longer: tells it why, then ends.
  virtual void Refuse(const Status& why) = 0;

  // False: input stays in the socket until answers have gone out. A session that takes no more
  // requests still takes input and drops it, so that the end of the connection is noticed.
  virtual bool wants_input() const = 0;

  // To receive more may take milliseconds, whatever it is: a handshake.
  virtual bool greets() const { return false; }

  // Next may give a request without more input.
  virtual bool has_more() const { return false; }

  // Next gives nothing although there is input: an answer must come first.
  virtual bool held_up() const { return false; }

  // Taken so far, for the timeouts. Those that it answers on the spot nobody else sees; without any
  // it need not count.
  virtual uint64_t requests() const { return 0; }

  // What it keeps for its client: input that is in no request yet, and answers that wait.
  virtual size_t held_bytes() const { return output().size(); }

  virtual std::string_view output() const = 0;
  virtual void Sent(size_t bytes) = 0;
  // Everything is said: close the connection once output() is empty.
  virtual bool finished() const = 0;
  virtual Phase phase() const = 0;
};

}  // namespace delayd

// daemon/session.h — one client's conversation, whatever its protocol: bytes in, commands out;
// replies in, bytes out.
//
// What:    the server owns sockets, time and the engine; a session owns the order of requests and
//          answers and every rule of its protocol. Without a socket it runs in simulation, in tests
//          and under a fuzzer.
// Units:   base/time.h.
// Errors:  none; a client's mistakes are answered to the client.
// Threads: the core thread.
// Cost:    holds at most the input of one read, one partial request, and bounded output: the
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
  uint64_t tag = 0;  // chosen by the session; returned with the answer
  engine::Command command;
  // If set, the request is an operator's command to the store, and `command` is ignored.
  std::optional<AdminCommand> admin = std::nullopt;
};

class Session {
 public:
  // What the client is doing, for the timeouts.
  enum class Phase : uint8_t {
    kIdle,     // between requests
    kHead,     // has begun a request
    kBody,     // is sending the body of a request
    kWorking,  // waits for the daemon
  };

  virtual ~Session() = default;

  // The peer at the other end. Called once, before anything is received.
  virtual void SetPeer(Peer /*peer*/) {}

  virtual void Receive(std::string_view bytes) = 0;
  // The next complete request. `now` must have been read after the last Receive, so that a delay
  // counts from a moment after its request had arrived.
  virtual std::optional<SessionRequest> Next(const Now& now) = 0;

  // The same while there is no room for changes: only requests that change nothing and lease
  // nothing.
  virtual std::optional<SessionRequest> NextRead(const Now& /*now*/) { return std::nullopt; }

  // True if NextRead returns nothing, whatever else arrives, until Next has returned a request.
  virtual bool waits_for_room() const { return true; }

  virtual void Answer(uint64_t tag, const engine::Reply& reply) = 0;

  // Answers an admin command; never called on a session whose protocol has none.
  virtual void AnswerAdmin(uint64_t /*tag*/, const AdminAnswer& /*answer*/) { DELAYD_CHECK(false); }

  // What the client may do has changed. Refuses the lease requests that wait and that it may make
  // no longer, and returns their tags; they get no other answer.
  virtual std::vector<uint64_t> RefuseForbidden() { return {}; }

  // No more requests are taken; those under way are answered. Idempotent.
  virtual void Stop() = 0;

  // The client sends nothing more; the requests that it has sent are served.
  virtual void InputEnded() { Stop(); }

  // The client has said within its protocol that it sends no more; its socket may stay open.
  virtual bool input_ended() const { return false; }

  // The client has gone. Returns its leases, which are given back; no answer is sent about that.
  virtual std::vector<LeaseToken> Leave() { return {}; }

  // Nobody reads the client's answers any more. Returns the leases in those of which nothing has
  // gone out; the client cannot have learned of these.
  virtual std::vector<LeaseToken> TakeUntold() { return {}; }

  // Gives up on the request that the client is still sending, or that has not been taken yet: tells
  // it why, then ends.
  virtual void Refuse(const Status& why) = 0;

  // A request that has arrived has not been taken yet, and Refuse can answer it.
  virtual bool has_untaken() const { return false; }

  // False: input stays in the socket until answers have gone out. A session that takes no more
  // requests still accepts input and drops it, so that the end of the connection is noticed.
  virtual bool wants_input() const = 0;

  // Receive may take milliseconds, whatever arrives, because a handshake is under way.
  virtual bool greets() const { return false; }

  // Next may return a request without more input.
  virtual bool has_more() const { return false; }

  // Next returns nothing although there is input, because an answer must come first.
  virtual bool held_up() const { return false; }

  // The number of requests taken so far, for the timeouts: only the session sees those that it
  // answers itself. A session that answers none itself need not count.
  virtual uint64_t requests() const { return 0; }

  // The bytes kept for the client: input that is not yet part of a request, and unsent answers.
  virtual size_t held_bytes() const { return output().size(); }

  virtual std::string_view output() const = 0;
  virtual void Sent(size_t bytes) = 0;
  // No output will follow: close the connection once output() is empty.
  virtual bool finished() const = 0;
  virtual Phase phase() const = 0;
};

}  // namespace delayd

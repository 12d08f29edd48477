// daemon/connection.h — one client's socket and session. Internal to the server.
//
// What:    moves bytes between the two, once each way per turn, and knows when the client has been
//          too slow. Asio only reports when the socket is ready. Reading and writing are done here,
//          so that one buffer serves all connections and an idle one costs next to nothing.
// Units:   base/time.h, on the boot clock.
// Errors:  none; a broken connection is a state (gone()).
// Threads: the core thread.
// Cost:    one recv(2) and one send(2) a turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "daemon/engine/command.h"
#include "daemon/session.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/types.h>

namespace delayd {

struct ConnectionTimeouts {
  Millis idle{std::chrono::minutes(5)};
  Millis head{std::chrono::seconds(10)};   // since the request's first byte, or the connect
  Millis body{std::chrono::seconds(30)};   // without a byte of the body
  Millis write{std::chrono::seconds(30)};  // without the client taking a byte of the answer
  Millis linger{std::chrono::seconds(2)};  // for the client to close after the last answer
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Ready = std::function<void(const std::shared_ptr<Connection>&)>;
  using Stream = boost::asio::posix::stream_descriptor;

  Connection(Stream stream,
             std::unique_ptr<Session> session,
             const ConnectionTimeouts* timeouts,
             BootTime now);

  // Each calls `ready` once, as a handler, when the socket can be read or written.
  void ArmRead(const Ready& ready);
  void ArmWrite(const Ready& ready);
  // For a connection that is not being read, where a close would go unnoticed: calls `ready` once
  // the client has closed.
  void ArmHangup(const Ready& ready);

  // Reads what fits into `buffer` and hands it to the session.
  void Read(std::span<char> buffer);
  // Sends the session's output. True: the socket took all of it, or nobody would read it.
  bool Write();

  // The session's next request, or its next one that only reads. Notes it for the timeouts.
  std::optional<SessionRequest> NextRequest(const Now& now, bool reads_only);

  // No more input will come, but answers may still be read.
  bool input_ended() const { return input_ended_ || session_->input_ended(); }

  // No more input will come, and nobody will read an answer.
  bool hung_up() const { return hung_up_; }

  // Looks whether that is so: a read that got the client's last bytes does not tell.
  void NoteHangup();

  // Broken or closed.
  bool gone() const { return gone_; }

  // Tells the client that nothing follows, and waits for it to close.
  void BeginLinger(BootTime now);

  bool lingering() const { return lingering_; }

  void Close();

  // Called at the end of a turn.
  void NoteTime(BootTime now);
  std::optional<BootTime> deadline() const;

  Session& session() { return *session_; }

  // ---- Kept by the server ----
  std::vector<engine::RequestId> pending;  // its requests that have no answer yet
  size_t leases = 0;                       // of them, those that ask for jobs
  bool touched = false;                    // in the list of connections to look at in this turn
  bool unserved = false;                   // read, perhaps to its end, since it was last served
  bool held_back = false;                  // has requests that wait for room
  bool pipelines = false;                  // has ever had several requests under way at once
  size_t held_bytes = 0;                   // of its session, when last measured
  std::optional<BootTime> queued_deadline;

 private:
  void Wait(Stream::wait_type what, bool Connection::*armed, const Ready& ready);
  ssize_t Send(std::string_view output);

  Stream stream_;
  std::unique_ptr<Session> session_;
  const ConnectionTimeouts* timeouts_;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool hangup_armed_ = false;
  bool input_ended_ = false;
  bool hung_up_ = false;
  bool gone_ = false;
  bool lingering_ = false;

  // Since NoteTime was last called.
  bool received_ = false;
  bool sent_ = false;
  bool took_request_ = false;

  bool any_request_ = false;
  uint64_t requests_ = 0;
  Session::Phase phase_ = Session::Phase::kIdle;
  bool output_waits_ = false;
  BootTime phase_since_;
  BootTime active_;
  BootTime output_since_;
};

}  // namespace delayd

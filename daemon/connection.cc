#include "daemon/connection.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace delayd {

namespace {

bool WouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Connection::Connection(Stream stream,
                       std::unique_ptr<Session> session,
                       const ConnectionTimeouts* timeouts,
                       BootTime now)
    : stream_(std::move(stream)),
      session_(std::move(session)),
      timeouts_(timeouts),
      phase_since_(now),
      active_(now),
      output_since_(now) {}

void Connection::ArmRead(const Ready& ready) {
  if (!read_armed_ && !gone_ && !input_ended_) {
    Wait(Stream::wait_read, &Connection::read_armed_, ready);
  }
}

void Connection::ArmWrite(const Ready& ready) {
  if (!write_armed_ && !gone_) {
    Wait(Stream::wait_write, &Connection::write_armed_, ready);
  }
}

void Connection::ArmHangup(const Ready& ready) {
  if (!hangup_armed_ && !hung_up_ && !gone_ && !input_ended_) {
    Wait(Stream::wait_error, &Connection::hangup_armed_, ready);
  }
}

void Connection::Wait(Stream::wait_type what, bool Connection::*armed, const Ready& ready) {
  this->*armed = true;
  stream_.async_wait(what, [self = shared_from_this(), what, armed, &ready](const auto& error) {
    *self.*armed = false;
    if (error || self->gone_) {
      return;
    }
    if (what == Stream::wait_error) {
      self->NoteHangup();
      if (!self->hung_up_) {
        return;  // it was urgent data, which is ignored
      }
    }
    ready(self);
  });
}

void Connection::Read(std::span<char> buffer) {
  const ssize_t got = ::recv(stream_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    received_ = true;
    if (!lingering_) {
      session_->Receive({buffer.data(), static_cast<size_t>(got)});
    }
  } else if (got == 0 || !WouldBlock(errno)) {
    // A reset ends the input, too: a client that closes with an answer unread sends one.
    input_ended_ = true;
    NoteHangup();
  }
}

bool Connection::Write() {
  const std::string_view output = session_->output();
  if (gone_ || output.empty()) {
    return true;
  }
  const ssize_t sent = Send(output);
  if (sent >= 0) {
    sent_ = true;
    session_->Sent(static_cast<size_t>(sent));
    return session_->output().empty();
  }
  if (!WouldBlock(errno)) {
    Close();
  }
  return gone_;
}

// As send(2). What is for a client that has gone is taken, and dropped: the requests that it had
// sent are run to the end.
ssize_t Connection::Send(std::string_view output) {
  if (!hung_up_) {
    const ssize_t sent =
        ::send(stream_.native_handle(), output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || WouldBlock(errno)) {
      return sent;
    }
    NoteHangup();
  }
  return hung_up_ ? static_cast<ssize_t>(output.size()) : -1;
}

std::optional<SessionRequest> Connection::NextRequest(const Now& now, bool reads_only) {
  std::optional<SessionRequest> request =
      reads_only ? session_->NextRead(now) : session_->Next(now);
  took_request_ = took_request_ || request.has_value();
  return request;
}

void Connection::BeginLinger(BootTime now) {
  if (!lingering_) {
    lingering_ = true;
    output_since_ = now;  // there may have been no last answer
    ::shutdown(stream_.native_handle(), SHUT_WR);
  }
}

void Connection::Close() {
  gone_ = true;
  boost::system::error_code ignored;
  stream_.close(ignored);  // NOLINT(bugprone-unused-return-value)
}

void Connection::NoteTime(BootTime now) {
  const Session::Phase phase = session_->phase();
  const uint64_t requests = session_->requests();
  took_request_ = took_request_ || requests != requests_;
  if (phase != phase_ || took_request_) {
    phase_since_ = now;
  }
  if (received_ || sent_ || took_request_ || phase != phase_) {
    active_ = now;
  }
  const bool output_waits = !session_->output().empty();
  if (sent_ || output_waits != output_waits_) {
    output_since_ = now;
  }
  any_request_ = any_request_ || took_request_;
  requests_ = requests;
  phase_ = phase;
  output_waits_ = output_waits;
  received_ = sent_ = took_request_ = false;
}

std::optional<BootTime> Connection::deadline() const {
  if (lingering_) {
    return output_since_ + timeouts_->linger;
  }
  if (output_waits_) {
    return output_since_ + timeouts_->write;
  }
  switch (phase_) {
    case Session::Phase::kIdle:
      return any_request_ ? active_ + timeouts_->idle : phase_since_ + timeouts_->head;
    case Session::Phase::kHead:
      return phase_since_ + timeouts_->head;
    case Session::Phase::kBody:
      return active_ + timeouts_->body;
    case Session::Phase::kWorking:
      return std::nullopt;
  }
  return std::nullopt;
}

// A client that has shut down only its sending side still reads; one that has closed does not, and
// on a Unix socket POLLHUP shows that.
void Connection::NoteHangup() {
  pollfd state{.fd = stream_.native_handle(), .events = 0, .revents = 0};
  hung_up_ = ::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0;
}

}  // namespace delayd

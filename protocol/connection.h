// protocol/connection.h — one stream socket to a daemon, through TLS or not, with a deadline on
// everything.
//
// Private to the client. Interrupted system calls go on.
// Errors:  kUnavailable "unreachable" and kPermissionDenied with cause and cure from Open;
//          kUnavailable "tls_failed" from a peer that is not who it should be; kDeadlineExceeded
//          "timed_out"; kUnavailable "connection_lost" when the peer is gone.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "protocol/host_lookup.h"
#include "protocol/server_address.h"
#include "protocol/tls.h"

namespace delayd::protocol {

class Connection {
 public:
  Connection() = default;

  ~Connection() { Close(); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `tls` is for an address that asks for it; the server must prove to be that host.
  Status Open(const ServerAddress& address,
              BootTime deadline,
              const TlsContext::Ptr& tls = nullptr);
  void Close();

  bool open() const { return fd_ >= 0; }

  // A wait is over, as at its deadline, when `fd` can be read, and to send or receive when `grace`
  // is over after that; -1: none.
  void GiveUpWhen(int fd, Millis grace = Millis(0)) {
    give_up_fd_ = fd;
    grace_ = grace;
  }

  // No byte and no end has come since the last answer: good for another request.
  bool Idle() const;

  // Sends all; `sent` counts what the kernel took, also when it fails.
  Status Send(std::string_view bytes, BootTime deadline, size_t* sent);
  // At least one byte, or zero at the end of the stream.
  StatusOr<size_t> Receive(char* buffer, size_t size, BootTime deadline);

 private:
  Status Wait(short events, BootTime deadline) const;
  Status Nap(BootTime deadline) const;
  Status OpenUnix(const ServerAddress& address, BootTime deadline);
  Status OpenTcp(const ServerAddress& address, BootTime deadline);
  Status OpenTls(const ServerAddress& address, const TlsContext::Ptr& tls, BootTime deadline);

  // The socket itself, past TLS.
  Status SendRaw(std::string_view bytes, BootTime deadline, size_t* sent);
  StatusOr<size_t> ReceiveRaw(char* buffer, size_t size, BootTime deadline);
  // What the channel has to say to the peer.
  Status Flush(BootTime deadline);
  // Waits for more of the conversation; false at its end.
  StatusOr<bool> ReceiveTls(BootTime deadline);

  int fd_ = -1;
  int give_up_fd_ = -1;
  Millis grace_{0};
  HostLookup lookup_;
  std::optional<TlsChannel> tls_;
  bool heard_ = false;  // something, since it was opened or sent to
  std::string plain_;   // deciphered and not fetched yet
};

}  // namespace delayd::protocol

// protocol/connection.h — one stream socket to a daemon, with or without TLS, and a deadline on
// every operation.
//
// Private to the client. Interrupted system calls are resumed.
// Errors:  kUnavailable "unreachable" and kPermissionDenied with cause and cure from Open;
//          kUnavailable "tls_failed" from a peer that cannot prove its identity; kDeadlineExceeded
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

  // `tls` is used for an address that asks for TLS; the server must prove that it is that host.
  Status Open(const ServerAddress& address,
              BootTime deadline,
              const TlsContext::Ptr& tls = nullptr);
  void Close();

  bool open() const { return fd_ >= 0; }

  // Every wait ends as at its deadline once `fd` is readable; a wait to send or receive first goes
  // on for `grace`. -1: none.
  void GiveUpWhen(int fd, Millis grace = Millis(0)) {
    give_up_fd_ = fd;
    grace_ = grace;
  }

  // Neither a byte nor the end of the stream has come since the last answer, so the connection can
  // carry another request.
  bool Idle() const;

  // Sends all of `bytes`; `sent` counts what the kernel took, also on failure.
  Status Send(std::string_view bytes, BootTime deadline, size_t* sent);
  // At least one byte, or zero at the end of the stream.
  StatusOr<size_t> Receive(char* buffer, size_t size, BootTime deadline);

 private:
  Status Wait(short events, BootTime deadline) const;
  Status Nap(BootTime deadline) const;
  Status OpenUnix(const ServerAddress& address, BootTime deadline);
  Status OpenTcp(const ServerAddress& address, BootTime deadline);
  Status OpenTls(const ServerAddress& address, const TlsContext::Ptr& tls, BootTime deadline);

  // The raw socket, bypassing TLS.
  Status SendRaw(std::string_view bytes, BootTime deadline, size_t* sent);
  StatusOr<size_t> ReceiveRaw(char* buffer, size_t size, BootTime deadline);
  // Sends what the TLS channel has queued for the peer.
  Status Flush(BootTime deadline);
  // Waits for more bytes from the peer; false at the end of the stream.
  StatusOr<bool> ReceiveTls(BootTime deadline);

  int fd_ = -1;
  int give_up_fd_ = -1;
  Millis grace_{0};
  HostLookup lookup_;
  std::optional<TlsChannel> tls_;
  bool heard_ = false;  // whether bytes have come since the last Open or Send
  std::string plain_;   // decrypted, not yet fetched
};

}  // namespace delayd::protocol

// protocol/tls.h — TLS without sockets: bytes of the network in, bytes of the conversation out, and
// the other way round.
//
// What:    TLS 1.2 and 1.3 with OpenSSL, which stays inside tls.cc. Whoever owns the socket moves
//          the bytes, with its own deadlines and limits; so a daemon's session, the client and a
//          test use the same channel.
// Errors:  kInvalidArgument for a certificate, key or authority file that cannot be used,
//          kPermissionDenied for a key that others can read; kUnavailable "tls_failed" from a
//          channel whose peer does not speak TLS, or is not who it should be. A channel that failed
//          stays failed; what is in output() then tells the peer why.
// Threads: a context is read only, one channel has one owner.
// Cost:    one signature for a server's handshake: 0.05 ms with a P-256 key, 0.7 ms with RSA 2048.
// Source:  RFC 8446, RFC 9325; docs/decisions/0077-tls.md.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/outgoing_bytes.h"
#include "base/status.h"
#include "base/time.h"

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace delayd::protocol {

class TlsContext {
 public:
  using Ptr = std::shared_ptr<const TlsContext>;

  // For a server: PEM files, of the certificate with its chain, and of its key.
  static StatusOr<Ptr> ForServer(const std::string& certificate_file, const std::string& key_file);
  // For a client: trusts the authorities in `ca_file` or, when that is empty, those of the system.
  static StatusOr<Ptr> ForClient(const std::string& ca_file);

  // Of a server: from when to when the certificate that it shows is valid.
  WallTime certificate_begin() const;
  WallTime certificate_end() const;

 private:
  friend class TlsChannel;

  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  std::unique_ptr<ssl_ctx_st, Free> context_;
};

class TlsChannel {
 public:
  // A server's: waits for the peer to begin.
  explicit TlsChannel(const TlsContext::Ptr& context);
  // A client's: the peer's certificate must be for `host`, a name or an address.
  TlsChannel(const TlsContext::Ptr& context, const std::string& host);

  // What came from the network; what it says is appended to `plain`.
  Status Receive(std::string_view bytes, std::string* plain);
  // The handshake is done; nothing can be said before. False again while a later handshake message
  // of the peer, such as a new key, has come only in part.
  bool established() const;
  // All of it goes to output(); none, and kFailedPrecondition, while it is not established.
  Status Send(std::string_view plain);
  // Says that nothing follows.
  void Close();

  // The peer has said that nothing follows: without it the end of the stream may be somebody's cut.
  bool peer_closed() const { return peer_closed_; }

  // What is to be sent to the network, and how much of it has been.
  std::string_view output() const { return output_.unsent(); }

  void Sent(size_t bytes) { output_.Sent(bytes); }

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };

  Status Handshake();
  Status Read(std::string* plain);
  // Fetches what OpenSSL wants to say.
  void Drain();
  Status Failure();

  std::unique_ptr<ssl_st, Free> ssl_;
  bio_st* in_ = nullptr;  // ssl_ owns both
  bio_st* out_ = nullptr;
  OutgoingBytes output_;
  bool peer_closed_ = false;
  Status failure_;
};

}  // namespace delayd::protocol

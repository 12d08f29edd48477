// protocol/tls.h — TLS without sockets: turns bytes from the network into plain text, and plain
// text into bytes for the network.
//
// What:    TLS 1.2 and 1.3 with OpenSSL, which stays inside tls.cc. The owner of the socket moves
//          the bytes, with its own deadlines and limits; so a daemon's session, the client and a
//          test use the same channel.
// Errors:  kInvalidArgument for a certificate, key or authority file that cannot be used,
//          kPermissionDenied for a key that others can read; kUnavailable "tls_failed" from a
//          channel whose peer does not speak TLS, or cannot prove its identity. A channel that has
//          failed stays failed; output() then holds the alert that tells the peer why.
// Threads: a context is read-only; each channel has one owner.
// Cost:    one signature per server handshake: 0.05 ms with a P-256 key, 0.7 ms with RSA 2048.
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

  // For a server: the PEM files of the certificate with its chain, and of its key. If one of them
  // cannot be used, `is_key` tells which.
  static StatusOr<Ptr> ForServer(const std::string& certificate_file,
                                 const std::string& key_file,
                                 bool* is_key = nullptr);
  // For a client: trusts the authorities in `ca_file` or, when that is empty, those of the system.
  static StatusOr<Ptr> ForClient(const std::string& ca_file);

  // For a server: when the certificate that it shows becomes valid, and when it expires.
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
  // The server's side: waits for the peer to begin.
  explicit TlsChannel(const TlsContext::Ptr& context);
  // The client's side: the peer's certificate must be for `host`, a name or an address.
  TlsChannel(const TlsContext::Ptr& context, const std::string& host);

  // Takes bytes from the network; what they decrypt to is appended to `plain`.
  Status Receive(std::string_view bytes, std::string* plain);
  // The handshake is done; nothing can be sent before. False again while a later handshake message
  // of the peer, such as a key update, has arrived only in part.
  bool established() const;
  // Encrypts all of `plain` into output(). kFailedPrecondition, and nothing sent, while the channel
  // is not established.
  Status Send(std::string_view plain);
  // Sends close_notify: nothing follows.
  void Close();

  // The peer has sent close_notify. Without it, the end of the stream may be a truncation attack.
  bool peer_closed() const { return peer_closed_; }

  // The bytes to send to the network; Sent says how many of them have gone.
  std::string_view output() const { return output_.unsent(); }

  void Sent(size_t bytes) { output_.Sent(bytes); }

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };

  Status Handshake();
  Status Read(std::string* plain);
  // Moves what OpenSSL has written to output().
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

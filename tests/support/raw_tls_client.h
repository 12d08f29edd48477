// tests/support/raw_tls_client.h — a client of TLS 1.3 that cuts its messages into records as no
// library lets it.
//
// What:    bytes of the network in and out, as protocol::TlsChannel has them. It believes any
//          certificate.
// Errors:  DELAYD_CHECK.
// Threads: one.
// Source:  RFC 8446, 5.2 and 7.1.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct ssl_st;

namespace delayd::test {

class RawTlsClient {
 public:
  enum class Type : uint8_t { kHandshake = 22, kApplicationData = 23 };

  // Asks the other side to change its key for what it sends, as the client does from then on.
  static constexpr std::string_view kKeyUpdate{"\x18\x00\x00\x01\x00", 5};

  RawTlsClient();
  ~RawTlsClient();
  RawTlsClient(const RawTlsClient&) = delete;
  RawTlsClient& operator=(const RawTlsClient&) = delete;

  // What the server sent; what is to be sent to it. Begins with nothing.
  std::string Exchange(std::string_view from_server);
  bool established() const;

  // Once it is established, instead of what the library would send.
  std::string Record(Type type, std::string_view content);

  // What the server has said.
  const std::string& heard() const { return heard_; }

 private:
  std::string Derive(std::string_view label, uint8_t bytes) const;

  ssl_st* ssl_ = nullptr;
  std::string secret_;
  std::string heard_;
  uint64_t records_ = 0;
};

}  // namespace delayd::test

// daemon/http/http_reader.h — parses HTTP/1.1 requests from bytes, however they are split.
//
// What:    one request after another from one connection, pipelined ones included. Each request is
//          either complete and within the limits, or refused, after which nothing more is read.
// Units:   limits in bytes.
// Errors:  a refusal is a response: 400 malformed or ambiguous (both Content-Length and
//          Transfer-Encoding, a single-valued field sent twice, no Host), 403 Origin, 413, 414,
//          415 Content-Encoding, 417, 421 foreign Host, 431, 501, 505.
// Threads: one.
// Cost:    every byte is looked at once or twice, but a head that arrives in parts is parsed again
//          with each new line. From 1 MiB of a body on, memory is reserved for eight times what
//          has arrived, never for all that a header promises.
// Source:  RFC 9112; the grammar is Boost.Beast's, whose headers stay in the .cc file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "daemon/http/http_message.h"

namespace delayd::http {

struct ReaderOptions {
  size_t line_bytes_max = limits::kRequestLineBytesMax;
  size_t head_bytes_max = limits::kRequestHeaderBytesMax;
  size_t fields_max = 64;
  // The largest body allowed for a request; empty: limits::kRequestBodyBytesMax.
  std::function<size_t(std::string_view method, std::string_view target)> body_bytes_max;
  // Hosts that a request may name, without ports; empty: any. A TCP listener must list its own
  // hosts, or a web page could reach it by DNS rebinding.
  std::vector<std::string> hosts;
};

class HttpReader {
 public:
  enum class Event : uint8_t {
    kNeedMore,
    kContinue,  // the client waits for "100 Continue" before it sends the body; reported once
    kRequest,   // TakeRequest has it
    kRefused,   // refusal() has the answer; the connection must be closed after it
  };

  enum class Phase : uint8_t { kIdle, kHead, kBody, kRefused };

  // Called for each request that has a body, before the body is read, with target, method and
  // authorization. It is called even if the body has already arrived; otherwise the answer would
  // depend on how the bytes arrived. A response refuses the request.
  using CheckRequest = std::function<std::optional<Response>(const Request& head)>;

  // `options` must outlive the reader; `check` may be empty.
  explicit HttpReader(const ReaderOptions& options, CheckRequest check = {});
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  void Append(std::string_view bytes);
  Event Next();
  Request TakeRequest();

  const Response& refusal() const { return refusal_; }

  // Whether the request being read, or the refused one, is a HEAD: the answer must have no body.
  bool is_head() const;

  // Whether the request that is ready to be taken only reads: a GET or a HEAD.
  bool is_read() const;

  // Bytes that have arrived and are not yet part of a request.
  size_t buffered_bytes() const { return unread().size(); }

  // The same plus the part of a body that has arrived.
  size_t held_bytes() const;

  // Discards what has arrived; nothing more is read.
  void Drop();

  Phase phase() const { return phase_; }

 private:
  struct Parser;

  void BeginHead();
  Event ReadHead();
  Event ReadBody();
  // True if the head is acceptable; else Refuse has been called.
  bool CheckHead();
  bool TakeFields();
  bool CheckHost();
  bool CheckFraming();
  bool CheckCaller();
  bool CheckLineLength();
  size_t BodyBytesMax() const;
  Status BodyTooLarge() const;
  Event Refuse(int http_status, Status status);
  Event Refuse(Response refusal);
  Event RefuseLargeHead();
  Event RefuseParseError();

  std::string_view unread() const { return std::string_view(buffer_).substr(read_); }

  void Consume(size_t bytes);

  const ReaderOptions& options_;
  const CheckRequest check_;
  std::unique_ptr<Parser> parser_;
  std::string buffer_;
  size_t read_ = 0;        // the part of buffer_ that was consumed
  size_t head_tried_ = 0;  // unread bytes that the head parser has been given
  Phase phase_ = Phase::kIdle;
  bool line_checked_ = false;
  bool continue_wanted_ = false;
  bool was_head_ = false;
  Response refusal_;
};

}  // namespace delayd::http

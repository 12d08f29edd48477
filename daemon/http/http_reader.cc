#include "daemon/http/http_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/size_text.h"
#include "daemon/http/field_values.h"
#include "protocol/http_chunks.h"
#include "protocol/nearest.h"

#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>

namespace delayd::http {

namespace {

namespace beast = boost::beast;
using beast::http::error;
using beast::http::field;

// Beast's string_body reserves what Content-Length promises at once; this one as much of it as
// kPromiseFactor times what has arrived, once that is kPromiseMin. Growing by doubling, a body of
// 30 MB was copied once more, and took twice as many pages. With less than kPromiseMin of each
// body, a kernel that gives huge pages of 2 MiB made all that was reserved real memory.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(beast::http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<uint64_t>& length, beast::error_code& code) {
      promised_ = length.value_or(0);
      code = {};
    }

    template <class Buffers>
    size_t put(const Buffers& buffers, beast::error_code& code) {
      code = {};
      size_t bytes = 0;
      if (const uint64_t size = body_.size() + beast::buffer_bytes(buffers);
          size > body_.capacity() && size >= kPromiseMin && size < promised_) {
        body_.reserve(std::min(promised_, kPromiseFactor * size));
      }
      for (const boost::asio::const_buffer buffer : beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        bytes += buffer.size();
      }
      return bytes;
    }

    void finish(beast::error_code& code) { code = {}; }

   private:
    static constexpr uint64_t kPromiseFactor = 8;
    static constexpr uint64_t kPromiseMin = uint64_t{1} << 20;

    value_type& body_;
    uint64_t promised_ = 0;  // in Content-Length; it is checked before the first byte is put
  };
};

std::string_view ToStd(beast::string_view text) {
  return {text.data(), text.size()};
}

// Beast reports a bad version for every line without a version that it knows, even if the line is
// not HTTP at all.
bool NamesOtherVersion(std::string_view unread) {
  const std::string_view line = unread.substr(0, unread.find('\n'));
  const size_t at = line.rfind(" HTTP/");
  return at != std::string_view::npos && !line.substr(at + 6).starts_with("1.1") &&
         !line.substr(at + 6).starts_with("1.0");
}

// Collects the fields of a head, one after the other.
struct HeadFields {
  std::optional<std::string> host;
  std::optional<std::string> authorization;
  std::optional<std::string> content_type;
  std::optional<std::string> encoding;
  std::optional<std::string> expect;
  std::optional<std::string> coding;
  std::optional<std::string> if_match;
  bool wants_minimal = false;
  bool has_idempotency_key = false;
  bool has_length = false;
  bool has_origin = false;
  size_t count = 0;
  std::string twice;  // the name of a single-valued field that was sent twice

  void TakeOnce(const beast::http::fields::value_type& line, std::optional<std::string>* out) {
    if (out->has_value()) {
      twice = ToStd(line.name_string());
    }
    out->emplace(ToStd(line.value()));
  }

  void Take(const beast::http::fields::value_type& line) {
    ++count;
    switch (line.name()) {
      case field::host:
        return TakeOnce(line, &host);
      case field::authorization:
        return TakeOnce(line, &authorization);
      case field::content_type:
        return TakeOnce(line, &content_type);
      case field::content_encoding:
        return TakeOnce(line, &encoding);
      case field::expect:
        return TakeOnce(line, &expect);
      case field::transfer_encoding:
        return TakeOnce(line, &coding);
      case field::content_length:
        has_length = true;
        return;
      case field::origin:
        has_origin = true;
        return;
      case field::if_match:  // several are one list
        if_match = (if_match ? *if_match + "," : "") + std::string(ToStd(line.value()));
        return;
      case field::prefer:
        wants_minimal = wants_minimal || PrefersMinimal(ToStd(line.value()));
        return;
      default:
        has_idempotency_key =
            has_idempotency_key || beast::iequals(line.name_string(), "Idempotency-Key");
        return;
    }
  }
};

}  // namespace

struct HttpReader::Parser {
  std::optional<beast::http::request_parser<GrowingBody>> request;
  beast::error_code code;
  // From the head alone: Beast adds trailer fields of a chunked body to its own fields, where they
  // have no meaning (RFC 9110 section 6.5.1).
  Request head;
  HeadFields fields;

  size_t Put(std::string_view bytes) {
    return request->put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
  }
};

HttpReader::HttpReader(const ReaderOptions& options, CheckRequest check)
    : options_(options), check_(std::move(check)), parser_(std::make_unique<Parser>()) {}

HttpReader::~HttpReader() = default;

void HttpReader::Append(std::string_view bytes) {
  if (phase_ != Phase::kRefused) {
    buffer_.append(bytes);
  }
}

HttpReader::Event HttpReader::Next() {
  if (phase_ == Phase::kIdle) {
    // RFC 9112 section 2.2: empty lines before a request should be ignored.
    while (unread().starts_with("\r\n")) {
      Consume(2);
    }
    if (unread().empty() || unread() == "\r") {
      return Event::kNeedMore;
    }
    phase_ = Phase::kHead;
    BeginHead();
    line_checked_ = false;
    continue_wanted_ = false;
  }
  switch (phase_) {
    case Phase::kHead:
      return ReadHead();
    case Phase::kBody:
      return ReadBody();
    case Phase::kIdle:
    case Phase::kRefused:
      break;
  }
  return phase_ == Phase::kRefused ? Event::kRefused : Event::kNeedMore;
}

void HttpReader::BeginHead() {
  parser_->request.emplace();
  // Not eager: stop after the head, which is checked before the body is read, and after every
  // chunk. Whether more input is needed must not depend on how the bytes arrived.
  parser_->request->eager(false);
  parser_->request->header_limit(static_cast<uint32_t>(options_.head_bytes_max));
  parser_->request->body_limit(boost::none);
  head_tried_ = 0;
}

HttpReader::Event HttpReader::ReadHead() {
  if (!line_checked_ && !CheckLineLength()) {
    return phase_ == Phase::kRefused ? Event::kRefused : Event::kNeedMore;
  }
  // Of a head that is too long, parse only as much as shows that. Whether a mistake after that
  // point is found would depend on how the bytes arrive.
  const std::string_view head = unread().substr(0, options_.head_bytes_max + 1);
  const bool is_last_try = head.size() > options_.head_bytes_max;
  // Once a line is incomplete, Beast checks no further line before the end of the head. So parsing
  // starts again with each new line, which costs little, since few heads arrive in parts.
  if (head_tried_ > 0 && (is_last_try || head.find('\n', head_tried_) != std::string_view::npos)) {
    BeginHead();
  }
  const size_t used = head_tried_ == 0 ? parser_->Put(head) : 0;
  if (parser_->code && parser_->code != error::need_more) {
    return RefuseParseError();
  }
  // Beast applies its limit anew after each line, so the total is checked here.
  const bool done = parser_->request->is_header_done();
  head_tried_ = head.size();
  if ((done ? used : head_tried_) > options_.head_bytes_max) {
    return RefuseLargeHead();
  }
  if (!done) {
    return Event::kNeedMore;
  }
  Consume(used);
  phase_ = Phase::kBody;
  if (!CheckHead()) {
    return Event::kRefused;
  }
  if (continue_wanted_ && !parser_->request->is_done() && unread().empty()) {
    return Event::kContinue;
  }
  return ReadBody();
}

HttpReader::Event HttpReader::ReadBody() {
  while (!parser_->request->is_done()) {
    // Only a last chunk waits for more bytes. Any other may be malformed, and is refused as soon as
    // its line has arrived.
    const size_t least =
        parser_->request->chunked() ? protocol::ChunkedBytesMin(unread()) : size_t{1};
    if (unread().size() < least) {
      return Event::kNeedMore;
    }
    Consume(parser_->Put(unread()));
    if (parser_->code == error::need_more) {
      // Only the beginning of a chunk header or of trailers can be left.
      if (unread().size() > options_.head_bytes_max) {
        return Refuse(431,
                      InvalidArgument("a chunk header or trailer exceeds " +
                                          FormatSize(options_.head_bytes_max),
                                      "header_too_large"));
      }
      return Event::kNeedMore;
    }
    if (parser_->code) {
      return RefuseParseError();
    }
  }
  return Event::kRequest;
}

Request HttpReader::TakeRequest() {
  Request request = std::move(parser_->head);
  request.body = std::move(parser_->request->get().body());
  parser_->request.reset();
  phase_ = Phase::kIdle;
  return request;
}

bool HttpReader::is_head() const {
  if (phase_ == Phase::kHead) {
    return unread().starts_with("HEAD ");  // Beast gives no method for a line that it refuses
  }
  return parser_->request ? parser_->request->get().method() == beast::http::verb::head : was_head_;
}

bool HttpReader::is_read() const {
  return is_head() || parser_->request->get().method() == beast::http::verb::get;
}

size_t HttpReader::held_bytes() const {
  return unread().size() + (parser_->request ? parser_->request->get().body().size() : 0);
}

bool HttpReader::CheckLineLength() {
  // A TLS client waits for an answer to its handshake and never sends a line.
  if (constexpr char kTlsHandshake = '\x16'; unread().front() == kTlsHandshake) {
    Refuse(400,
           InvalidArgument("HTTP is spoken here without TLS; ask with http://, or set "
                           "tls.certificate and tls.key",
                           "bad_request"));
    return false;
  }
  const std::string_view line = unread().substr(0, options_.line_bytes_max);
  if (line.find('\n') != std::string_view::npos) {
    line_checked_ = true;
    return true;
  }
  if (unread().size() >= options_.line_bytes_max) {
    Refuse(414,
           InvalidArgument("the request line exceeds " + FormatSize(options_.line_bytes_max),
                           "uri_too_long"));
  }
  return false;
}

bool HttpReader::TakeFields() {
  const auto& message = parser_->request->get();
  HeadFields& fields = parser_->fields;
  fields = {};
  for (const auto& line : message) {
    fields.Take(line);
  }
  if (fields.count > options_.fields_max) {
    Refuse(431,
           InvalidArgument(
               "more than " + std::to_string(options_.fields_max) + " header fields; send fewer",
               "header_too_large"));
    return false;
  }
  if (!fields.twice.empty()) {
    Refuse(
        400,
        InvalidArgument("header " + protocol::Quoted(fields.twice) + " stands twice; send it once",
                        "bad_request"));
    return false;
  }
  parser_->head = {.method = std::string(ToStd(message.method_string())),
                   .target = std::string(ToStd(message.target())),
                   .content_type = MediaType(fields.content_type.value_or("")),
                   .keep_alive = parser_->request->keep_alive(),
                   .is_http_1_0 = message.version() == 10,
                   .authorization = std::move(fields.authorization).value_or(""),
                   .if_match = std::move(fields.if_match),
                   .wants_minimal = fields.wants_minimal,
                   .has_idempotency_key = fields.has_idempotency_key};
  return true;
}

bool HttpReader::CheckHead() {
  if (!TakeFields() || !CheckHost() || !CheckFraming()) {
    return false;
  }
  if (parser_->fields.has_origin) {
    Refuse(403,
           PermissionDenied("requests of web pages (header Origin) are refused; use a program",
                            "origin_refused"));
    return false;
  }
  if (const auto& coding = parser_->fields.encoding;
      coding && !beast::iequals(*coding, "identity")) {
    Refuse(415,
           InvalidArgument("Content-Encoding " + protocol::Quoted(*coding) +
                               " is not supported; send the body as it is",
                           "unsupported_media_type"));
    return false;
  }
  if (parser_->fields.expect) {
    if (!beast::iequals(*parser_->fields.expect, "100-continue")) {
      Refuse(417,
             InvalidArgument("only 'Expect: 100-continue' is supported", "expectation_failed"));
      return false;
    }
    continue_wanted_ = !parser_->head.is_http_1_0;
  }
  return CheckCaller();
}

bool HttpReader::CheckCaller() {
  if (!check_ || parser_->request->is_done()) {
    return true;
  }
  std::optional<Response> refusal = check_(parser_->head);
  if (refusal) {
    Refuse(*std::move(refusal));
  }
  return !refusal;
}

bool HttpReader::CheckHost() {
  if (!parser_->fields.host && !parser_->head.is_http_1_0) {
    Refuse(400, InvalidArgument("a request needs exactly one Host header", "bad_request"));
    return false;
  }
  if (std::optional<std::string> host = TakeAuthority(&parser_->head.target)) {
    parser_->fields.host = std::move(host);
  }
  if (options_.hosts.empty()) {
    return true;
  }
  const std::string given = parser_->fields.host.value_or("");
  const std::string host = HostWithoutPort(given);
  if (std::find(options_.hosts.begin(), options_.hosts.end(), host) == options_.hosts.end()) {
    Refuse(421,
           InvalidArgument(
               (given.empty() ? "there is no Host header"
                              : "Host " + protocol::Quoted(given) + " is not this server") +
                   "; use the address that api.listen names, which a proxy must send "
                   "as Host too",
               "host_refused"));
    return false;
  }
  return true;
}

// Refuses everything that two parsers could interpret differently.
bool HttpReader::CheckFraming() {
  if (parser_->fields.coding) {
    if (parser_->fields.has_length || parser_->head.is_http_1_0) {
      Refuse(400,
             InvalidArgument("Transfer-Encoding must not stand beside Content-Length, nor in a "
                             "request of HTTP/1.0",
                             "bad_request"));
      return false;
    }
    if (!beast::iequals(*parser_->fields.coding, "chunked")) {
      Refuse(501,
             InvalidArgument("the only transfer coding that is supported is 'chunked'",
                             "unsupported_transfer_coding"));
      return false;
    }
  }
  const size_t body_max = BodyBytesMax();
  if (parser_->request->content_length().value_or(0) > body_max) {
    parser_->code = error::body_limit;
    RefuseParseError();
    return false;
  }
  parser_->request->body_limit(body_max);
  return true;
}

size_t HttpReader::BodyBytesMax() const {
  return options_.body_bytes_max
             ? options_.body_bytes_max(parser_->head.method, parser_->head.target)
             : limits::kRequestBodyBytesMax;
}

// Quotes the request: its path may be mistyped, and then no setting helps.
Status HttpReader::BodyTooLarge() const {
  const Request& head = parser_->head;
  const size_t body_max = BodyBytesMax();
  return ResourceExhausted(
      protocol::Quoted(head.method + " " + head.target) +
          (body_max == 0 ? " takes no body; send it without one"
                         : " takes a body of " + FormatSize(body_max) +
                               " at most; send less (limits.request_body sets that of POST "
                               "/v1/jobs)"),
      "body_too_large");
}

HttpReader::Event HttpReader::Refuse(int http_status, Status status) {
  return Refuse(ProblemResponse(http_status, status));
}

HttpReader::Event HttpReader::Refuse(Response refusal) {
  refusal_ = std::move(refusal);
  Drop();
  return Event::kRefused;
}

void HttpReader::Drop() {
  was_head_ = is_head();
  phase_ = Phase::kRefused;
  parser_->request.reset();
  buffer_ = std::string();
  read_ = 0;
}

HttpReader::Event HttpReader::RefuseLargeHead() {
  return Refuse(
      431,
      InvalidArgument("the head of the request exceeds " + FormatSize(options_.head_bytes_max) +
                          "; send fewer or shorter header fields",
                      "header_too_large"));
}

HttpReader::Event HttpReader::RefuseParseError() {
  const beast::error_code code = parser_->code;
  if (code == error::header_limit) {
    return RefuseLargeHead();
  }
  if (code == error::body_limit) {
    return Refuse(413, BodyTooLarge());
  }
  if (code == error::bad_version && NamesOtherVersion(unread())) {
    return Refuse(505,
                  InvalidArgument("only HTTP/1.1 and HTTP/1.0 are spoken here",
                                  "http_version_not_supported"));
  }
  return Refuse(
      400, InvalidArgument("this is not a request of HTTP/1.1: " + code.message(), "bad_request"));
}

void HttpReader::Consume(size_t bytes) {
  read_ += bytes;
  if (read_ == buffer_.size()) {
    buffer_.clear();
    read_ = 0;
    // A large request must not hold its buffer for the rest of the connection.
    if (constexpr size_t kKeep = size_t{256} * 1024; buffer_.capacity() > kKeep) {
      buffer_.shrink_to_fit();
    }
  } else if (constexpr size_t kCompact = size_t{16} * 1024;
             read_ > kCompact && read_ >= unread().size()) {
    buffer_.erase(0, read_);
    read_ = 0;
  }
}

}  // namespace delayd::http

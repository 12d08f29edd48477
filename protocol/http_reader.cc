#include "protocol/http_reader.h"

#include <charconv>
#include <optional>
#include <string>

#include "base/limits.h"
#include "protocol/http_chunks.h"
#include "protocol/timestamp.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace delayd::protocol {

namespace http = boost::beast::http;

namespace {

constexpr std::string_view kCommitHeader = "Delayd-Commit";
// Room for a page of large jobs; the bound guards against a runaway server.
constexpr uint64_t kBodyBytesMax = uint64_t{1} << 30;

Status MalformedHttp(const boost::system::error_code& error) {
  return Internal("the answer is no HTTP (" + error.message() +
                      "); is something other than delayd listening there?",
                  "invalid_response");
}

}  // namespace

struct HttpReader::Parser {
  Parser() { Begin(); }

  void Begin() {
    beast.emplace();
    beast->eager(true);
    beast->body_limit(kBodyBytesMax);
  }

  // An interim response: the final one follows (RFC 9110, section 15.2).
  bool is_interim() const {
    return beast->is_done() && beast->get().result_int() / 100 == 1 && !turns();
  }

  // Switching protocols: what follows is not HTTP.
  bool turns() const { return beast->get().result() == http::status::switching_protocols; }

  std::optional<http::response_parser<http::string_body>> beast;
  std::string unread;
};

HttpReader::HttpReader() : parser_(std::make_unique<Parser>()) {}

HttpReader::~HttpReader() = default;

Status HttpReader::Feed(std::string_view bytes) {
  parser_->unread += bytes;
  boost::system::error_code error;
  while (!parser_->unread.empty() && !parser_->beast->is_done()) {
    if (parser_->beast->is_header_done() && parser_->beast->chunked() &&
        parser_->unread.size() < ChunkedBytesMin(parser_->unread)) {
      return OkStatus();
    }
    const size_t used = parser_->beast->put(boost::asio::buffer(parser_->unread), error);
    parser_->unread.erase(0, used);
    if (error == http::error::need_more) {
      return OkStatus();
    }
    if (error) {
      return MalformedHttp(error);
    }
    if (parser_->is_interim()) {
      parser_->Begin();
    } else if (used == 0) {
      break;
    }
  }
  return OkStatus();
}

Status HttpReader::FeedEnd() {
  boost::system::error_code error = http::error::end_of_stream;
  if (parser_->beast->got_some()) {
    parser_->beast->put_eof(error);
  }
  return error ? MalformedHttp(error) : OkStatus();
}

bool HttpReader::done() const {
  return parser_->beast->is_done();
}

bool HttpReader::keep_alive() const {
  return parser_->beast->keep_alive() && !parser_->turns() && parser_->unread.empty();
}

HttpResponse HttpReader::Take() {
  auto message = parser_->beast->release();
  HttpResponse response;
  response.status = static_cast<int>(message.result_int());
  const auto commit = message[kCommitHeader];
  std::from_chars(commit.data(), commit.data() + commit.size(), response.commit_sequence);
  response.date = ParseHttpDate(message[http::field::date]);
  const auto location = message[http::field::location];
  response.location.assign(location.data(), location.size());
  response.body = std::move(message.body());
  return response;
}

}  // namespace delayd::protocol

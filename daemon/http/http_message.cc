#include "daemon/http/http_message.h"

#include "protocol/json_writer.h"
#include "protocol/problem.h"

namespace delayd::http {

namespace {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return status < 500 ? "Refused" : "Failed";
  }
}

}  // namespace

Response ProblemResponse(const Status& status) {
  return {.status = protocol::HttpStatusOf(status),
          .content_type = "application/problem+json",
          .body = protocol::ProblemToJson(status)};
}

Response ProblemResponse(int http_status, const Status& status) {
  protocol::JsonObjectWriter problem;
  problem.String("type", "about:blank");
  problem.String("title", ReasonPhrase(http_status));
  problem.Number("status", static_cast<uint64_t>(http_status));
  problem.String("code", status.reason());
  problem.String("detail", status.message());
  return {
      .status = http_status, .content_type = "application/problem+json", .body = problem.Take()};
}

void AppendResponse(const Response& response, bool head_only, bool close, std::string* out) {
  const auto header = [out](std::string_view name, std::string_view value) {
    out->append(name).append(": ").append(value).append("\r\n");
  };
  out->append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  out->append(ReasonPhrase(response.status)).append("\r\n");
  header("Content-Type", response.content_type);
  header("Content-Length", std::to_string(response.body.size()));
  // A job changes without anybody asking: nothing in between may keep an answer.
  header("Cache-Control", "no-store");
  if (response.commit_sequence != 0) {
    header("Delayd-Commit", std::to_string(response.commit_sequence));
  }
  if (!response.location.empty()) {
    header("Location", response.location);
  }
  if (!response.allow.empty()) {
    header("Allow", response.allow);
  }
  if (response.status == 429 || response.status == 503) {
    header("Retry-After", "1");
  }
  if (close) {
    header("Connection", "close");
  }
  out->append("\r\n");
  if (!head_only) {
    out->append(response.body);
  }
}

}  // namespace delayd::http

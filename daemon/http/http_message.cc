#include "daemon/http/http_message.h"

#include "protocol/problem.h"

namespace delayd::http {

Response ProblemResponse(const Status& status) {
  return ProblemResponse(protocol::HttpStatusOf(status), status);
}

Response ProblemResponse(int http_status, const Status& status) {
  return {.status = http_status,
          .content_type = "application/problem+json",
          .body = protocol::ProblemToJson(http_status, status)};
}

void AppendResponse(const Response& response,
                    std::string_view date,
                    bool head_only,
                    std::string_view connection,
                    std::string* out) {
  const auto header = [out](std::string_view name, std::string_view value) {
    out->append(name).append(": ").append(value).append("\r\n");
  };
  out->append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  out->append(protocol::HttpReasonPhrase(response.status)).append("\r\n");
  if (!date.empty()) {
    header("Date", date);
  }
  header("Content-Type", response.content_type);
  header("Content-Length", std::to_string(response.body.size()));
  // Jobs change by themselves, so no cache on the way may store an answer.
  header("Cache-Control", "no-store");
  if (response.commit_sequence != 0) {
    header("Delayd-Commit", std::to_string(response.commit_sequence));
  }
  if (!response.location.empty()) {
    header("Location", response.location);
  }
  if (!response.etag.empty()) {
    header("ETag", '"' + response.etag + '"');
  }
  if (!response.allow.empty()) {
    header("Allow", response.allow);
  }
  if (response.ask_for_token) {
    header("WWW-Authenticate", "Bearer realm=\"delayd\"");
  }
  if (response.status == 429 || response.status == 503) {
    header("Retry-After", "1");
  }
  if (!connection.empty()) {
    header("Connection", connection);
  }
  out->append("\r\n");
  if (!head_only) {
    out->append(response.body);
  }
}

}  // namespace delayd::http

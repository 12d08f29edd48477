// daemon/http/http_message.h — a request as the router sees it, and a response as it is written.
//
// Errors:  a response with status 400 or more has a problem document (protocol/problem.h) as body.
// Threads: values; pure functions.
// Source:  RFC 9110 and 9112.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/access.h"

namespace delayd::http {

struct Request {
  std::string method;
  std::string target;        // as received, without scheme and host: "/v1/jobs?queue=a%2Fb"
  std::string content_type;  // media type in lower case, without parameters; empty: none
  std::string body;
  bool keep_alive = true;
  bool is_http_1_0 = false;             // then the client must be told if the connection stays open
  std::string authorization;            // the header as received; never logged
  std::optional<std::string> if_match;  // the header as received; several are joined into one list
  bool wants_minimal = false;           // Prefer: return=minimal
  bool has_idempotency_key = false;     // that header is present; this API does not support it
  Role role = Role::kAdmin;             // of the caller; set by the session
  std::string user;                     // likewise; empty: nobody in particular
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  uint64_t commit_sequence = 0;  // 0: no Delayd-Commit header
  std::string location;
  std::string etag;            // of a job, without its quotes
  std::string allow;           // of a 405
  bool ask_for_token = false;  // of a 401
};

// A refusal with the HTTP status that corresponds to its status code.
Response ProblemResponse(const Status& status);
// A refusal at the level of HTTP itself, for which no status code of ours is specific enough.
Response ProblemResponse(int http_status, const Status& status);

// Writes head and body. `date` and `connection` are the values of those headers; empty: no such
// header. Without a Connection header an HTTP/1.1 connection stays open. `head_only` is for HEAD:
// the length is given, but the body is not sent.
void AppendResponse(const Response& response,
                    std::string_view date,
                    bool head_only,
                    std::string_view connection,
                    std::string* out);

}  // namespace delayd::http

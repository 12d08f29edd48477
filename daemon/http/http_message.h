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
  std::string target;        // as it came, but for scheme and host: "/v1/jobs?queue=a%2Fb"
  std::string content_type;  // media type in lower case, without parameters; empty: none
  std::string body;
  bool keep_alive = true;
  bool is_http_1_0 = false;   // then the client must be told that the connection stays open
  std::string authorization;  // the header, as it came; never logged
  std::optional<std::string> if_match;  // the header, as it came; several are one list
  bool wants_minimal = false;           // Prefer: return=minimal
  bool has_idempotency_key = false;     // the header of that name, which this API has not
  Role role = Role::kAdmin;             // of who asks; the session knows
  std::string user;                     // the same; empty: nobody in particular
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

// A refusal with the HTTP status that its code stands for.
Response ProblemResponse(const Status& status);
// A refusal on the level of HTTP itself, where no status code of ours says enough.
Response ProblemResponse(int http_status, const Status& status);

// With its head. `date`: the header of that name; empty: none. `head_only` answers HEAD: the length
// is told, the body is not sent. `connection`: the header of that name; empty: none, by which one
// of HTTP/1.1 stays open.
void AppendResponse(const Response& response,
                    std::string_view date,
                    bool head_only,
                    std::string_view connection,
                    std::string* out);

}  // namespace delayd::http

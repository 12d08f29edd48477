// protocol/problem.h — errors on the wire: application/problem+json (RFC 9457) with a stable code.
//
// What:    {"type": "about:blank", "title": "Not Found", "status": 404, "code": "not_found",
//          "detail": "job 42 ..."}, and a member for each of the Status' details. `code` is its
//          reason, `detail` its message.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

// 400, 404, 409, 413/429/507, 503 ... for a status that is not OK.
int HttpStatusOf(const Status& status);
// What stands behind the number on a status line, and as a problem's title.
std::string_view HttpReasonPhrase(int status);
std::string ProblemToJson(const Status& status);
// Where HTTP has a status of its own for it.
std::string ProblemToJson(int http_status, const Status& status);
// The Status that a server meant: by its code if it is known, else by the HTTP status, with the
// server's own reason and what else it says as text. `body` may be anything: what delayd did not
// write is kUnavailable, except for a refusal of who asks (401, 403) or of how much (413, 429 ...),
// and a server that took too long (504). `location`: the header of that name.
Status ParseProblem(int http_status, std::string_view body, std::string_view location = {});
// Whether an answer is of delayd, and not of a proxy or another server: a success begins as JSON,
// and anything else is as ProblemToJson writes it.
bool IsDelayds(int http_status, std::string_view body);
// Whether the same request may be answered otherwise in a while: the daemon was away, slow or full.
bool MayPass(const Status& answer);

}  // namespace delayd::protocol

// protocol/problem.h — errors on the wire: application/problem+json (RFC 9457) with a stable code.
//
// What:    {"type": "about:blank", "title": "Not Found", "status": 404, "code": "not_found",
//          "detail": "job 42 ..."}, and a member for each detail of the Status. `code` is the
//          Status' reason, `detail` its message.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

// 400, 404, 409, 413/429/507, 503 ... for a status that is not OK.
int HttpStatusOf(const Status& status);
// The reason phrase on a status line, also the title of a problem.
std::string_view HttpReasonPhrase(int status);
std::string ProblemToJson(const Status& status);
// For an error that HTTP has a status of its own for.
std::string ProblemToJson(int http_status, const Status& status);
// The Status that the server meant: taken from the problem's code if that is known, else from the
// HTTP status, with the server's own reason; its other text members become details. `body` may be
// anything. An answer that delayd did not write is kUnavailable, except when it refuses the caller
// (401, 403) or the amount (413, 429 ...), or reports a timeout (504). `location`: the header of
// that name.
Status ParseProblem(int http_status, std::string_view body, std::string_view location = {});
// Whether an answer comes from delayd, not from a proxy or another server: a success begins like a
// JSON object, and anything else looks like the output of ProblemToJson.
bool IsDelayds(int http_status, std::string_view body);
// Whether the same request may succeed later: the daemon was away, slow, draining or at a limit.
bool MayPass(const Status& answer);

}  // namespace delayd::protocol

// daemon/http/target.h — the target of a request, split into path segments and query parameters.
//
// Errors:  kInvalidArgument "invalid_target" or "invalid_parameter" that names the part.
// Threads: pure functions.
// Source:  RFC 3986; '+' stays '+', so that times with a zone need no escaping.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace delayd::http {

struct Target {
  std::vector<std::string> segments;                       // "/v1/queues/a%2Fb" -> v1, queues, a/b
  std::vector<std::pair<std::string, std::string>> query;  // in order, no name twice
};

StatusOr<Target> ParseTarget(std::string_view text);

}  // namespace delayd::http

// protocol/uri.h — percent-encoding of the parts of a request target.
//
// Errors:  kInvalidArgument "invalid_target" names the bad escape.
// Threads: pure functions.
// Source:  RFC 3986, sections 2.1 and 2.3.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

// Encodes one path segment or query value: everything but letters, digits and - . _ ~.
std::string PercentEncode(std::string_view text);
// Decodes one path segment or query value; '+' stays '+'. Split the target at '/', '?', '&' and '='
// first.
StatusOr<std::string> PercentDecode(std::string_view text);

}  // namespace delayd::protocol

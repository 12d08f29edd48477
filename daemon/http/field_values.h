// daemon/http/field_values.h — what stands in the fields of a request's head, and in its target.
//
// Threads: pure functions.
// Source:  RFC 9110 and 9112, RFC 7240.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace delayd::http {

std::string Lower(std::string_view text);

// "Application/JSON; charset=utf-8" -> "application/json"
std::string MediaType(std::string_view content_type);

// Of Prefer: "respond-async, return=minimal; x=y", among others, and with parameters.
bool PrefersMinimal(std::string_view prefer);

// "[0:0::1]:8080" -> "::1", "localhost:80" -> "localhost"; empty where it is no host and port.
std::string HostWithoutPort(std::string_view host);

// RFC 9112 section 3.2.2: "http://localhost:80/v1/jobs" asks for "/v1/jobs" of that host, whatever
// the field Host says. The host; none where the target is a path.
std::optional<std::string> TakeAuthority(std::string* target);

}  // namespace delayd::http

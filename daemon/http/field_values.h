// daemon/http/field_values.h — parses the header fields of a request, and the host in its target.
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

// True for Prefer: return=minimal, also among others and with parameters, as in
// "respond-async, return=minimal; x=y".
bool PrefersMinimal(std::string_view prefer);

// "[0:0::1]:8080" -> "::1", "localhost:80" -> "localhost"; empty if it is not a host and port.
std::string HostWithoutPort(std::string_view host);

// RFC 9112 section 3.2.2: "http://localhost:80/v1/jobs" asks that host for "/v1/jobs", whatever the
// Host field says. Leaves the path in `target` and returns the host; none if it is a path already.
std::optional<std::string> TakeAuthority(std::string* target);

}  // namespace delayd::http

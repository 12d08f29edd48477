// protocol/openapi.h — the description of the HTTP API, as GET /openapi.json serves it.
//
// What:    the text of protocol/openapi.json, built into the program. Tests check it against the
// routes, the problem codes, the parsers and the answers of a running daemon.
// Threads: constant.
#pragma once

#include <string_view>

namespace delayd::protocol {

std::string_view OpenApiDocument();

}  // namespace delayd::protocol

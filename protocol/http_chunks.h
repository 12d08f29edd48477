// protocol/http_chunks.h — what a caller of Beast's parser must know about chunked bodies.
//
// Source:  RFC 9112, section 7.1; boost/beast/http/impl/basic_parser.ipp of Boost 1.81, 1.83 and
//          1.90.
#pragma once

#include <cstddef>
#include <string_view>

namespace delayd::protocol {

// How many bytes of a chunked body must have arrived before the parser is called. The last chunk
// ends the body with "0\r\n\r\n". When the "0\r\n" and the byte after it arrive separately, an
// older Beast fails an assertion and the process ends; a newer one accepts the "0\r\n" by itself.
constexpr size_t ChunkedBytesMin(std::string_view unread) {
  return unread.starts_with('0') ? 5 : 1;
}

}  // namespace delayd::protocol

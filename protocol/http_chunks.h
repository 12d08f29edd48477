// protocol/http_chunks.h — what a caller of Beast's parser must know of chunked bodies.
//
// Source:  RFC 9112, section 7.1; boost/beast/http/impl/basic_parser.ipp of Boost 1.81.
#pragma once

#include <cstddef>

namespace delayd::protocol {

// What is still to come of a chunked body ends with "0\r\n\r\n", so it is never shorter than this.
// Beast must not be asked before so much is there: when "0\r\n" and the byte behind it arrive
// apart, it fails an assertion, and the process ends.
inline constexpr size_t kChunkedRestBytesMin = 5;

}  // namespace delayd::protocol

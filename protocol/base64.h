// protocol/base64.h — binary data inside JSON.
//
// Errors:  kInvalidArgument "invalid_base64": a byte outside the alphabet, missing padding, or bits
//          left over after the last byte.
// Threads: pure functions.
// Source:  RFC 4648, section 4: the standard alphabet, padded, without line breaks. The encoding is
//          canonical: any text that decodes encodes back to itself.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

std::string EncodeBase64(std::string_view bytes);
StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace delayd::protocol

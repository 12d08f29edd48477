// protocol/base64.h — bytes that are no text, inside JSON.
//
// Errors:  kInvalidArgument "invalid_base64": a byte outside the alphabet, missing padding, or bits
//          behind the last byte.
// Threads: pure functions.
// Source:  RFC 4648, section 4: the standard alphabet, padded, without line breaks. One text per
//          value: what decodes encodes back to itself.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

std::string EncodeBase64(std::string_view bytes);
StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace delayd::protocol

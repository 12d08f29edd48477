// daemon/config_values.h — parses single settings as people write them.
//
// Units:   sizes in bytes, written "4096", "64KiB", "512MiB", "1GiB".
// Errors:  kInvalidArgument that quotes the text and says what is expected.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd {

StatusOr<uint64_t> ParseSize(std::string_view text, uint64_t min, uint64_t max);
StatusOr<uint64_t> ParseCount(std::string_view text, uint64_t min, uint64_t max);
StatusOr<double> ParseFactor(std::string_view text, double min, double max);

struct ListenAddress {
  std::string host;  // as CanonicalAddress spells it
  uint16_t port = 0;
};

// "127.0.0.1:11380" or "[::1]:11380". `usual_port` appears in the example that errors give.
StatusOr<ListenAddress> ParseListenAddress(std::string_view text,
                                           std::string_view usual_port = "11380");
// True if only this machine can reach the address.
bool IsLoopback(const ListenAddress& address);

// Parse a setting and check its bounds.
Status SetDuration(std::string_view text, Millis min, Millis max, Millis* duration);
Status SetCount(std::string_view text, uint32_t min, uint32_t max, uint32_t* count);

}  // namespace delayd

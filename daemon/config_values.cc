#include "daemon/config_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/size_text.h"
#include "daemon/ip_address.h"
#include "protocol/duration.h"
#include "protocol/nearest.h"

#include <arpa/inet.h>

namespace delayd {

namespace {

struct SizeUnit {
  std::string_view name;
  int shift;
};

constexpr std::array<SizeUnit, 5> kSizeUnits = {
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};

using protocol::Quoted;

bool ParseWhole(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

StatusOr<uint64_t> ParseSize(std::string_view text, uint64_t min, uint64_t max) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  const auto* known = std::find_if(kSizeUnits.begin(), kSizeUnits.end(), [&](const SizeUnit& u) {
    return u.name == unit || (unit.empty() && u.shift == 0);
  });
  uint64_t number = 0;
  if (known == kSizeUnits.end() || !ParseWhole(text.substr(0, digits), &number)) {
    return InvalidArgument("expected a size such as 512MiB (units B, KiB, MiB, GiB, TiB), found " +
                           Quoted(text));
  }
  if (number > (max >> known->shift) || (number << known->shift) < min) {
    return InvalidArgument("expected a size from " + FormatSize(min) + " to " + FormatSize(max) +
                           ", found " + Quoted(text));
  }
  return number << known->shift;
}

StatusOr<uint64_t> ParseCount(std::string_view text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  if (!ParseWhole(text, &number) || number < min || number > max) {
    return InvalidArgument("expected a whole number from " + std::to_string(min) + " to " +
                           std::to_string(max) + ", found " + Quoted(text));
  }
  return number;
}

StatusOr<double> ParseFactor(std::string_view text, double min, double max) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Written so that a NaN is refused too.
  const bool in_range = number >= min && number <= max;
  if (error != std::errc() || end != text.data() + text.size() || !in_range) {
    return InvalidArgument("expected a number from " + std::to_string(static_cast<int>(min)) +
                           " to " + std::to_string(static_cast<int>(max)) + ", found " +
                           Quoted(text));
  }
  return number;
}

StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view usual_port) {
  const std::string example = "127.0.0.1:" + std::string(usual_port);
  const size_t colon = text.rfind(':');
  uint64_t port = 0;
  if (colon == std::string_view::npos || !ParseWhole(text.substr(colon + 1), &port) ||
      port > 65535) {
    return InvalidArgument("expected ADDRESS:PORT such as " + example + ", found " + Quoted(text));
  }
  std::string_view host = text.substr(0, colon);
  if (host == "localhost") {
    host = "127.0.0.1";
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::optional<std::string> address = CanonicalAddress(std::string(host));
  if (!address) {
    return InvalidArgument("expected a literal address such as " + example +
                           " or [::1]:" + std::string(usual_port) + ", found " + Quoted(text));
  }
  return ListenAddress{*std::move(address), static_cast<uint16_t>(port)};
}

bool IsLoopback(const ListenAddress& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 &&
         std::memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
}

Status SetDuration(std::string_view text, Millis min, Millis max, Millis* duration) {
  const StatusOr<Millis> parsed = protocol::ParseDuration(text);
  DELAYD_RETURN_IF_ERROR(parsed.status());
  if (*parsed < min || *parsed > max) {
    return InvalidArgument("expected a duration from " + protocol::FormatDuration(min) + " to " +
                           protocol::FormatDuration(max) + ", found '" + std::string(text) + "'");
  }
  *duration = *parsed;
  return OkStatus();
}

Status SetCount(std::string_view text, uint32_t min, uint32_t max, uint32_t* count) {
  const StatusOr<uint64_t> parsed = ParseCount(text, min, max);
  DELAYD_RETURN_IF_ERROR(parsed.status());
  *count = static_cast<uint32_t>(*parsed);
  return OkStatus();
}

}  // namespace delayd

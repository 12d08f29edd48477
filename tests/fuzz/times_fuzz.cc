// Durations, times, request targets and the other short texts that people and clients write. The
// same bytes go to every parser; what one accepts must format to a text that it reads back to the
// same value, and any value must survive being written.
#include <cstring>
#include <string>
#include <string_view>

#include "base/job.h"
#include "base/limits.h"
#include "daemon/http/target.h"
#include "protocol/base64.h"
#include "protocol/duration.h"
#include "protocol/server_address.h"
#include "protocol/timestamp.h"
#include "protocol/uri.h"
#include "tests/fuzz/require.h"

namespace {

using namespace delayd;
using namespace delayd::protocol;
using fuzz::Require;

void TryDuration(std::string_view text) {
  const StatusOr<Millis> duration = ParseDuration(text);
  if (duration.ok()) {
    Require(duration->count() >= 0 && duration->count() <= limits::kDelayMsMax, "within the range");
    const StatusOr<Millis> again = ParseDuration(FormatDuration(*duration));
    Require(again.ok() && *again == *duration, FormatDuration(*duration));
  }
}

void TryTimestamp(std::string_view text) {
  const StatusOr<WallTime> time = ParseTimestamp(text);
  if (time.ok()) {
    Require(*time >= WallTime() && *time <= WallFromMillis(limits::kWallMsMax), "in range");
    const StatusOr<WallTime> again = ParseTimestamp(FormatUtc(*time));
    Require(again.ok() && *again == *time, FormatUtc(*time));
  }
}

void TryNumbers(std::string_view text) {
  uint64_t number = 0;
  std::memcpy(&number, text.data(), std::min(text.size(), sizeof number));
  const Millis duration(static_cast<int64_t>(number % (limits::kDelayMsMax + 1)));
  Require(*ParseDuration(FormatDuration(duration)) == duration, FormatDuration(duration));
  const WallTime time = WallFromMillis(static_cast<int64_t>(number % (limits::kWallMsMax + 1)));
  Require(*ParseTimestamp(FormatUtc(time)) == time, FormatUtc(time));
}

void TryTarget(std::string_view text) {
  Require(*PercentDecode(PercentEncode(text)) == text, "any bytes survive percent-encoding");
  const StatusOr<http::Target> target = http::ParseTarget(text);
  if (!target.ok()) {
    return;
  }
  std::string written;
  for (const std::string& segment : target->segments) {
    written += "/" + PercentEncode(segment);
  }
  for (const auto& [name, value] : target->query) {
    written += written.find('?') == std::string::npos ? "?" : "&";
    written += PercentEncode(name) + "=" + PercentEncode(value);
  }
  const StatusOr<http::Target> again = http::ParseTarget(written);
  Require(again.ok(), written);
  Require(again->segments == target->segments && again->query == target->query, written);
}

void TryNames(std::string_view text) {
  Require(*DecodeBase64(EncodeBase64(text)) == text, "any bytes survive base64");
  const StatusOr<std::string> bytes = DecodeBase64(text);
  Require(!bytes.ok() || EncodeBase64(*bytes) == text, "one text a value");
  const StatusOr<LeaseToken> token = ParseLeaseToken(text);
  Require(!token.ok() || *ParseLeaseToken(FormatLeaseToken(*token)) == *token, "tokens survive");
  if (const std::optional<JobState> state = ParseJobState(text)) {
    Require(JobStateName(*state) == text, "one name a state");
  }
  const StatusOr<ServerAddress> address = ParseServerAddress(text);
  if (address.ok()) {
    Require(address->path.empty() != address->host.empty(), "a path or a host");
    (void)HostHeader(*address);
  }
  (void)ValidateQueueName(text);
  (void)ValidateKey(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryDuration(text);
  TryTimestamp(text);
  TryNumbers(text);
  TryTarget(text);
  TryNames(text);
  return 0;
}

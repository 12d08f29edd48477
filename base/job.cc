#include "base/job.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/coding.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace delayd {
namespace {

bool IsQueueNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-+/;.$_()").find(c) != std::string_view::npos;
}

bool ParseNumber(std::string_view text, int base, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kScheduled:
      return "scheduled";
    case JobState::kReady:
      return "ready";
    case JobState::kLeased:
      return "leased";
    case JobState::kDead:
      return "dead";
    case JobState::kFinished:
      return "finished";
  }
  DELAYD_CHECK(false);
}

std::optional<JobState> ParseJobState(std::string_view name) {
  for (const JobState state : {JobState::kScheduled,
                               JobState::kReady,
                               JobState::kLeased,
                               JobState::kDead,
                               JobState::kFinished}) {
    if (name == JobStateName(state)) {
      return state;
    }
  }
  return std::nullopt;
}

std::string DescribeJobRef(const JobRef& ref) {
  if (const auto* id = std::get_if<JobId>(&ref)) {
    return "job " + std::to_string(ToInt(*id));
  }
  const auto& key = std::get<KeyRef>(ref);
  return "key " + Printable(key.key) + " in queue " + Printable(key.queue);
}

std::string FormatLeaseToken(const LeaseToken& token) {
  std::array<char, 64> text;
  char* const end = text.data() + text.size();
  char* at = std::to_chars(text.data(), end, ToInt(token.job)).ptr;
  for (const uint64_t number : {token.epoch, token.sequence}) {
    *at++ = '-';
    at = std::to_chars(at, end, number, 16).ptr;
  }
  return {text.data(), at};
}

StatusOr<LeaseToken> ParseLeaseToken(std::string_view text) {
  const size_t first = text.find('-');
  const size_t second = first == std::string_view::npos ? first : text.find('-', first + 1);
  LeaseToken token;
  uint64_t job = 0;
  if (second == std::string_view::npos || !ParseNumber(text.substr(0, first), 10, &job) ||
      !ParseNumber(text.substr(first + 1, second - first - 1), 16, &token.epoch) ||
      !ParseNumber(text.substr(second + 1), 16, &token.sequence)) {
    return InvalidArgument(
        "lease token '" + Printable(text) +
            "' is malformed; pass lease_token exactly as the lease answer gave it",
        "invalid_lease_token");
  }
  token.job = JobId{job};
  return token;
}

bool IsQueueName(std::string_view name) {
  return !name.empty() && name.size() <= limits::kQueueNameBytesMax && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), IsQueueNameByte);
}

Status ValidateQueueName(std::string_view name) {
  if (name.empty() || name.size() > limits::kQueueNameBytesMax) {
    return InvalidArgument("queue name has " + std::to_string(name.size()) + " bytes; use 1 to " +
                               std::to_string(limits::kQueueNameBytesMax),
                           "invalid_queue");
  }
  if (!IsQueueName(name)) {
    return InvalidArgument(
        "queue name '" + Printable(name) +
            "' is not allowed; use letters, digits and - + / ; . $ _ ( ), and do not "
            "start with '-'",
        "invalid_queue");
  }
  return OkStatus();
}

namespace {

constexpr std::array<std::string_view, 9> kEventNames = {"nacked",
                                                         "lease_expired",
                                                         "buried",
                                                         "died",
                                                         "kicked",
                                                         "moved",
                                                         "acked",
                                                         "cancelled",
                                                         "replaced"};

constexpr std::array<std::string_view, 3> kOnConflictNames = {"fail", "keep", "replace"};

}  // namespace

std::string_view JobEventName(JobEvent::Kind kind) {
  return kEventNames.at(static_cast<size_t>(kind) - 1);
}

std::optional<JobEvent::Kind> ParseJobEvent(std::string_view name) {
  const auto found = std::find(kEventNames.begin(), kEventNames.end(), name);
  if (found == kEventNames.end()) {
    return std::nullopt;
  }
  return static_cast<JobEvent::Kind>(found - kEventNames.begin() + 1);
}

std::string_view OnConflictName(OnConflict rule) {
  return kOnConflictNames.at(static_cast<size_t>(rule));
}

std::optional<OnConflict> ParseOnConflict(std::string_view name) {
  const auto found = std::find(kOnConflictNames.begin(), kOnConflictNames.end(), name);
  if (found == kOnConflictNames.end()) {
    return std::nullopt;
  }
  return static_cast<OnConflict>(found - kOnConflictNames.begin());
}

std::string TagOf(const JobView& job) {
  std::string state;
  const auto add = [&state](uint64_t number) { AppendU64(&state, number); };
  add(ToInt(job.id));
  add(static_cast<uint64_t>(job.state));
  add(static_cast<uint64_t>(ToMillis(job.due - job.due_step)));
  add(static_cast<uint64_t>(job.due_kind));
  add(job.priority);
  add(job.attempt);
  add(job.max_attempts);
  add(static_cast<uint64_t>(job.lease.count()));
  add(static_cast<uint64_t>(job.expires_after.value_or(Millis(-1)).count()));
  add(job.fingerprint);
  add(job.payload_bytes);
  for (const uint32_t count : {job.reserves, job.timeouts, job.releases, job.buries, job.kicks}) {
    add(count);
  }
  return FormatFingerprint(Fingerprint(state));
}

Status ValidateKey(std::string_view key) {
  if (key.empty() || key.size() > limits::kKeyBytesMax) {
    return InvalidArgument("key has " + std::to_string(key.size()) + " bytes; use 1 to " +
                               std::to_string(limits::kKeyBytesMax),
                           "invalid_key");
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(key.begin(), key.end(), is_control)) {
    return InvalidArgument("key '" + Printable(key) + "' has control characters; leave them out",
                           "invalid_key");
  }
  if (!IsShortUtf8(key)) {
    return InvalidArgument(
        "key '" + Printable(key) + "' is not UTF-8; send it so, or in hex or base64",
        "invalid_key");
  }
  return OkStatus();
}

}  // namespace delayd

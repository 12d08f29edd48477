#include "protocol/problem.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"

namespace delayd::protocol {
namespace {

struct Known {
  std::string_view reason;
  StatusCode code;
  int http_status;
};

// Reasons whose HTTP status is not their code's, or whose code cannot be derived from their HTTP
// status. All others travel as they are.
constexpr std::array<Known, 11> kReasons = {{
    {"body_too_large", StatusCode::kResourceExhausted, 413},
    {"changed", StatusCode::kFailedPrecondition, 412},
    {"damaged", StatusCode::kDataLoss, 500},
    {"disk_full", StatusCode::kResourceExhausted, 507},
    {"disk_read_only", StatusCode::kResourceExhausted, 503},
    {"draining", StatusCode::kResourceExhausted, 503},
    {"header_too_large", StatusCode::kResourceExhausted, 431},
    {"key_conflict", StatusCode::kAlreadyExists, 409},
    {"method_not_allowed", StatusCode::kInvalidArgument, 405},
    {"payload_too_large", StatusCode::kResourceExhausted, 413},
    {"unsupported_media_type", StatusCode::kInvalidArgument, 415},
}};

constexpr std::array<Known, 11> kCodes = {{
    {"invalid_argument", StatusCode::kInvalidArgument, 400},
    {"not_found", StatusCode::kNotFound, 404},
    {"already_exists", StatusCode::kAlreadyExists, 409},
    {"failed_precondition", StatusCode::kFailedPrecondition, 409},
    {"resource_exhausted", StatusCode::kResourceExhausted, 429},
    {"unavailable", StatusCode::kUnavailable, 503},
    {"outcome_unknown", StatusCode::kUnknown, 503},
    {"data_loss", StatusCode::kDataLoss, 500},
    {"permission_denied", StatusCode::kPermissionDenied, 403},
    {"deadline_exceeded", StatusCode::kDeadlineExceeded, 504},
    {"internal", StatusCode::kInternal, 500},
}};

const Known* FindReason(std::string_view reason) {
  for (const Known& known : kReasons) {
    if (known.reason == reason) {
      return &known;
    }
  }
  for (const Known& known : kCodes) {
    if (known.reason == reason) {
      return &known;
    }
  }
  return nullptr;
}

StatusCode CodeOfHttp(int http_status) {
  switch (http_status) {
    case 401:
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 408:
    case 504:
      return StatusCode::kDeadlineExceeded;
    case 409:
    case 412:
      return StatusCode::kFailedPrecondition;
    case 413:
    case 429:
    case 431:
    case 507:
      return StatusCode::kResourceExhausted;
    case 502:
    case 503:
      return StatusCode::kUnavailable;
    default:
      return http_status >= 400 && http_status < 500 ? StatusCode::kInvalidArgument
                                                     : StatusCode::kInternal;
  }
}

constexpr size_t kReasonBytesMax = 64;
constexpr size_t kKeptReasonsMax = 256;

bool IsSlug(std::string_view reason) {
  return !reason.empty() && reason.size() <= kReasonBytesMax &&
         std::all_of(reason.begin(), reason.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// A Status borrows its reason, so a reason that is not ours must be kept alive. The set is bounded,
// because any server can fill it; beyond the bound the reason is empty: the code's own is used.
std::string_view KeepReason(const std::string& reason) {
  static std::mutex mutex;
  // Never freed: a Status may outlive every static object.
  static auto& kept = *new std::set<std::string>();
  const std::lock_guard lock(mutex);
  const auto found = kept.find(reason);
  if (found != kept.end()) {
    return *found;
  }
  return kept.size() < kKeptReasonsMax ? std::string_view(*kept.insert(reason).first)
                                       : std::string_view();
}

struct ProblemText {
  std::string type;
  std::string status;
  std::string code;
  std::string detail;
  Status::Details details;  // its other text members
};

// None when delayd did not write it. Gateways have codes of their own, and some use RFC 9457.
std::optional<ProblemText> ReadProblem(int http_status, std::string_view body) {
  ProblemText problem;
  const Status read = ReadJsonObject(body, [&](std::string_view name, const JsonValue& value) {
    if (name == "status" && value.kind == JsonKind::kNumber) {
      problem.status = value.text;
    } else if (value.kind == JsonKind::kString && name == "type") {
      problem.type = value.text;
    } else if (value.kind == JsonKind::kString && name == "code") {
      problem.code = value.text;
    } else if (value.kind == JsonKind::kString && name == "detail") {
      problem.detail = value.text;
    } else if (value.kind == JsonKind::kString && name != "title") {
      problem.details.emplace_back(name, value.text);
    }
    return OkStatus();
  });
  const bool is_delayds = read.ok() && !problem.type.empty() &&
                          problem.status == std::to_string(http_status) && IsSlug(problem.code) &&
                          !problem.detail.empty();
  return is_delayds ? std::optional(std::move(problem)) : std::nullopt;
}

// What another server says, in short. A redirect usually leads to delayd.
std::string SaidBy(int http_status, std::string_view body, std::string_view location) {
  if (http_status / 100 == 3 && !location.empty()) {
    return "; it redirects to " + Quoted(location) +
           ": if delayd is there, give --server its scheme, host and port (443 where https:// "
           "names none)";
  }
  return body.empty() ? std::string() : ": " + Quoted(body);
}

// The answer of a proxy or another server says nothing about jobs, keys or leases. But a client
// that is not let in, or asks for too much, will be refused the next time too.
Status Foreign(int http_status, std::string_view body, std::string_view location) {
  std::string message = "HTTP " + std::to_string(http_status) +
                        ", and not from delayd: a proxy, or another server on this address" +
                        SaidBy(http_status, body, location);
  const StatusCode code = CodeOfHttp(http_status);
  switch (code) {
    case StatusCode::kPermissionDenied:
    case StatusCode::kDeadlineExceeded:
      return {code, std::move(message)};
    case StatusCode::kResourceExhausted:
      return {code, std::move(message), http_status == 413 ? "body_too_large" : ""};
    default:
      return Unavailable(std::move(message));
  }
}

}  // namespace

std::string_view HttpReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return status < 500 ? "Refused" : "Failed";
  }
}

int HttpStatusOf(const Status& status) {
  if (const Known* known = FindReason(status.reason());
      known != nullptr && known->code == status.code()) {
    return known->http_status;
  }
  for (const Known& known : kCodes) {
    if (known.code == status.code()) {
      return known.http_status;
    }
  }
  return 500;
}

std::string ProblemToJson(const Status& status) {
  return ProblemToJson(HttpStatusOf(status), status);
}

std::string ProblemToJson(int http_status, const Status& status) {
  JsonObjectWriter writer;
  writer.String("type", "about:blank");
  writer.String("title", HttpReasonPhrase(http_status));
  writer.Number("status", static_cast<uint64_t>(http_status));
  writer.String("code", status.reason());
  writer.String("detail", status.message());
  for (const auto& [name, value] : status.details()) {
    writer.String(name, value);
  }
  return writer.Take();
}

Status ParseProblem(int http_status, std::string_view body, std::string_view location) {
  std::optional<ProblemText> problem = ReadProblem(http_status, body);
  if (!problem.has_value()) {
    return Foreign(http_status, body, location);
  }
  const Known* known = FindReason(problem->code);
  Status status(known != nullptr ? known->code : CodeOfHttp(http_status),
                std::move(problem->detail),
                known != nullptr ? known->reason : KeepReason(problem->code));
  for (auto& [name, value] : problem->details) {
    status.AddDetail(name, std::move(value));
  }
  return status;
}

bool IsDelayds(int http_status, std::string_view body) {
  return http_status / 100 == 2 ? body.starts_with('{')
                                : ReadProblem(http_status, body).has_value();
}

bool MayPass(const Status& answer) {
  switch (answer.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return true;
    case StatusCode::kUnknown:
      return answer.reason() != "invalid_response";  // another version, or another server
    case StatusCode::kResourceExhausted:
      return answer.reason() == "resource_exhausted" || answer.reason() == "draining";
    case StatusCode::kOk:
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kDataLoss:
    case StatusCode::kPermissionDenied:
    case StatusCode::kInternal:
      return false;
  }
  return false;
}

}  // namespace delayd::protocol

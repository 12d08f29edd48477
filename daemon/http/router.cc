#include "daemon/http/router.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/http/field_values.h"
#include "daemon/http/route_handlers.h"
#include "protocol/nearest.h"

namespace delayd::http {

namespace {

enum class BodyRule : uint8_t { kNone, kJson, kJobs };

struct RouteEntry {
  std::string_view method;
  std::string_view path;  // '*' stands for one segment
  Role role;              // the lowest role that may use the route
  BodyRule body;
  std::string_view query;  // known parameters, separated by blanks
  Handler handler;
};

constexpr std::string_view kListQuery =
    "queue state due_before due_after key_prefix payload limit cursor";

constexpr auto kRoutes = std::to_array<RouteEntry>({
    {"POST", "v1/jobs", Role::kEnqueue, BodyRule::kJobs, "", EnqueueJobs},
    {"GET", "v1/jobs", Role::kRead, BodyRule::kNone, kListQuery, ListJobs},
    {"POST", "v1/jobs:cancel", Role::kEnqueue, BodyRule::kJson, "", CancelJobs},
    {"POST", "v1/jobs:cancel-by-id", Role::kEnqueue, BodyRule::kJson, "", CancelJobsById},
    {"POST", "v1/jobs:kick", Role::kEnqueue, BodyRule::kJson, "", KickJobs},
    {"POST", "v1/jobs:reschedule", Role::kEnqueue, BodyRule::kJson, "", RescheduleJobs},
    {"GET", "v1/jobs/*", Role::kRead, BodyRule::kNone, "", ShowJob},
    {"DELETE", "v1/jobs/*", Role::kEnqueue, BodyRule::kNone, "", CancelJob},
    {"PATCH", "v1/jobs/*", Role::kEnqueue, BodyRule::kJson, "", RescheduleJob},
    {"POST", "v1/jobs/*/kick", Role::kEnqueue, BodyRule::kJson, "", KickJob},
    {"POST", "v1/jobs/*/lease", Role::kEnqueue, BodyRule::kJson, "", LeaseOneJob},
    {"GET", "v1/queues/*/jobs/by-key/*", Role::kRead, BodyRule::kNone, "", ShowJob},
    {"DELETE", "v1/queues/*/jobs/by-key/*", Role::kEnqueue, BodyRule::kNone, "", CancelJob},
    {"PATCH", "v1/queues/*/jobs/by-key/*", Role::kEnqueue, BodyRule::kJson, "", RescheduleJob},
    {"POST", "v1/queues/*/jobs/by-key/*/kick", Role::kEnqueue, BodyRule::kJson, "", KickJob},
    {"POST", "v1/queues/*/jobs/by-key/*/lease", Role::kEnqueue, BodyRule::kJson, "", LeaseOneJob},
    {"POST", "v1/queues/*/pause", Role::kEnqueue, BodyRule::kJson, "", PauseQueue},
    {"POST", "v1/queues/*/resume", Role::kEnqueue, BodyRule::kJson, "", ResumeQueue},
    {"POST", "v1/queues/*/kick", Role::kEnqueue, BodyRule::kJson, "", KickQueue},
    {"POST", "v1/queues/*/lease", Role::kEnqueue, BodyRule::kJson, "", LeaseJobs},
    {"POST", "v1/leases:ack", Role::kEnqueue, BodyRule::kJson, "", AckLeases},
    {"POST", "v1/leases/*/ack", Role::kEnqueue, BodyRule::kJson, "", AckLease},
    {"POST", "v1/leases/*/nack", Role::kEnqueue, BodyRule::kJson, "", NackLease},
    {"POST", "v1/leases/*/bury", Role::kEnqueue, BodyRule::kJson, "", BuryLease},
    {"POST", "v1/leases/*/extend", Role::kEnqueue, BodyRule::kJson, "", ExtendLease},
    {"GET", "v1/queues", Role::kRead, BodyRule::kNone, "limit cursor", ListQueues},
    {"GET", "v1/queues/*", Role::kRead, BodyRule::kNone, "", ShowQueue},
    {"GET", "v1/forecast", Role::kRead, BodyRule::kNone, "queue from to step", ForecastJobs},
    {"GET", "v1/stats", Role::kRead, BodyRule::kNone, "", ShowStats},
    {"POST", "v1/clock/accept", Role::kAdmin, BodyRule::kJson, "", AcceptClock},
    {"POST", "v1/admin/verify", Role::kAdmin, BodyRule::kJson, "", VerifyNow},
    {"POST", "v1/admin/backup", Role::kAdmin, BodyRule::kJson, "", BackUpNow},
    {"POST", "v1/admin/drain", Role::kAdmin, BodyRule::kJson, "", DrainDaemon},
    {"GET", "healthz", Role::kNone, BodyRule::kNone, "", ShowHealth},
    {"GET", "readyz", Role::kNone, BodyRule::kNone, "", ShowReadiness},
    {"GET", "metrics", Role::kRead, BodyRule::kNone, "", ShowMetrics},
    {"GET", "openapi.json", Role::kRead, BodyRule::kNone, "", ShowOpenApi},
});

std::vector<std::string_view> Words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Fills `captures` with the segments that match a '*' of the path.
bool Matches(std::string_view path,
             const std::vector<std::string>& segments,
             std::vector<std::string>* captures) {
  captures->clear();
  size_t index = 0;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (index == segments.size()) {
      return false;
    }
    if (part == "*") {
      captures->push_back(segments[index]);
    } else if (part != segments[index]) {
      return false;
    }
    ++index;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return index == segments.size();
}

Status CheckQuery(const RouteEntry& route, const Target& target) {
  const std::vector<std::string_view> known = Words(route.query, ' ');
  for (const auto& [name, value] : target.query) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string advice = protocol::DidYouMean(name, known);
      if (advice.empty()) {
        advice = known.empty() ? "; this route takes none" : "; the parameters are";
        for (const std::string_view parameter : known) {
          advice += (parameter == known.front() ? " " : ", ") + std::string(parameter);
        }
      }
      return InvalidArgument("unknown query parameter " + protocol::Quoted(name) + advice,
                             "unknown_parameter");
    }
  }
  return OkStatus();
}

// A change that ignores the condition would be made whatever state the job is in.
Status CheckCondition(const RouteEntry& route, const Request& request) {
  return !request.if_match || route.method != "POST"
             ? OkStatus()
             : InvalidArgument(
                   "header If-Match: is for PATCH and DELETE of one job; look at the job and send "
                   "this request without it",
                   "invalid_if_match");
}

// Refuses a body whose type the route does not take; none: the body is fine.
std::optional<Response> CheckBody(BodyRule rule, const Request& request) {
  if (request.body.empty() && rule != BodyRule::kJobs) {
    return std::nullopt;
  }
  if (rule == BodyRule::kNone) {
    return ProblemResponse(
        400, InvalidArgument("this request takes no body; send it without one", "unexpected_body"));
  }
  const bool lines = rule == BodyRule::kJobs && request.content_type == kLinesType;
  if (request.content_type == "application/json" || lines) {
    return std::nullopt;
  }
  return ProblemResponse(
      415,
      InvalidArgument(
          (request.content_type.empty()
               ? "there is no Content-Type"
               : "Content-Type " + protocol::Quoted(request.content_type) + " is not taken here") +
              "; send application/json" +
              (rule == BodyRule::kJobs ? ", or application/x-ndjson for many jobs" : ""),
          "unsupported_media_type"));
}

Response NotAllowed(const Request& request, const std::string& allow) {
  Response response =
      ProblemResponse(405,
                      InvalidArgument("method " + protocol::Quoted(request.method) +
                                          " is not for this path; it " + "takes " + allow,
                                      "method_not_allowed"));
  response.allow = allow;
  return response;
}

// "/v1/jobs, /v1/queues, ... and /openapi.json": how the paths begin.
std::string BeginningsOfPaths() {
  std::vector<std::string_view> all;
  for (const RouteEntry& route : kRoutes) {
    constexpr std::string_view kVersion = "v1/";
    const size_t from = route.path.starts_with(kVersion) ? kVersion.size() : 0;
    const std::string_view beginning = route.path.substr(0, route.path.find_first_of("/:", from));
    if (std::find(all.begin(), all.end(), beginning) == all.end()) {
      all.push_back(beginning);
    }
  }
  std::string list;
  for (const std::string_view& beginning : all) {
    list += &beginning == &all.front() ? "/" : &beginning == &all.back() ? " and /" : ", /";
    list += beginning;
  }
  return list;
}

Response NoSuchRoute(const Request& request) {
  return ProblemResponse(404,
                         NotFound("there is nothing at " + protocol::Quoted(request.target) +
                                      "; the API begins at " + BeginningsOfPaths(),
                                  "no_such_route"));
}

Response NotYourRole(Role has, Role needed) {
  return ProblemResponse(
      PermissionDenied("this needs the role " + std::string(RoleName(needed)) + ", and you have " +
                           std::string(RoleName(has)) +
                           "; the settings under 'access' of the daemon say who has which",
                       "role_needed"));
}

}  // namespace

Router::Router(const RouterOptions& options) : options_(options) {
  DELAYD_CHECK(options_.service != nullptr);
}

const std::vector<RouteName>& Router::RouteNames() {
  static const auto* const names = [] {
    auto* all = new std::vector<RouteName>;
    for (const RouteEntry& route : kRoutes) {
      all->push_back({route.method, route.path});
    }
    return all;
  }();
  return *names;
}

std::variant<Caller, Response> Router::Admit(const Peer& peer,
                                             const Request& request,
                                             const FoundRoute& found) const {
  if (options_.access == nullptr) {
    return Caller{.role = Role::kAdmin};
  }
  const Access& access = *options_.access;
  const auto refuse = [](const char* detail) {
    Response response = ProblemResponse(401, PermissionDenied(detail, "token_needed"));
    response.ask_for_token = true;
    return response;
  };
  if (request.authorization.empty()) {
    // Monitoring may ask for health and readiness without a token.
    if (!peer.known && access.has_tokens() && !found.is_for_all) {
      return refuse(
          "this address needs a token: 'Authorization: Bearer TOKEN', or delayctl "
          "--token-file");
    }
    return Caller{.role = access.RoleOf(peer), .user = Access::UserOf(peer)};
  }
  constexpr std::string_view kScheme = "bearer ";
  std::string_view token = request.authorization;
  token.remove_prefix(std::min(token.find_first_not_of(' ', kScheme.size()), token.size()));
  if (Lower(request.authorization.substr(0, kScheme.size())) != kScheme) {
    return refuse(
        "Authorization takes 'Bearer TOKEN' alone; send that, or none where none is needed (a "
        "proxy that asks for passwords must not pass them on)");
  }
  std::optional<Caller> caller = access.CallerOfToken(token);
  if (!caller) {
    return refuse(
        "this token is not known here; the daemon's access.token_file has those that are");
  }
  if (peer.known) {
    caller->role = std::max(caller->role, access.RoleOf(peer));
  }
  return *std::move(caller);
}

FoundRoute Router::Find(const Request& head) {
  FoundRoute found{.number = kRoutes.size()};
  StatusOr<Target> target = ParseTarget(head.target);
  if (!target.ok()) {
    found.status = target.status();
    return found;
  }
  found.target = std::move(target).value();
  const std::string_view method =
      head.method == "HEAD" ? std::string_view("GET") : std::string_view(head.method);
  for (const RouteEntry& route : kRoutes) {
    if (!Matches(route.path, found.target.segments, &found.captures)) {
      continue;
    }
    found.is_for_all = route.role == Role::kNone;
    if (route.method == method) {
      found.number = static_cast<size_t>(&route - kRoutes.data());
      return found;
    }
    found.allow += (found.allow.empty() ? "" : ", ") + std::string(route.method);
    found.allow += route.method == "GET" ? ", HEAD" : "";
  }
  return found;
}

bool Router::HasRole(const FoundRoute& found, Role role) {
  return found.number == kRoutes.size() || role >= kRoutes[found.number].role;
}

std::optional<Response> Router::RefuseHead(const FoundRoute& found, Role role) {
  if (!found.status.ok()) {
    return ProblemResponse(found.status);
  }
  if (HasRole(found, role)) {
    return std::nullopt;
  }
  return NotYourRole(role, kRoutes[found.number].role);
}

Routed Router::Route(const Request& request,
                     const FoundRoute& found,
                     const Now& now,
                     protocol::JobSpecLines* lines) const {
  if (std::optional<Response> refused = RefuseHead(found, request.role)) {
    return *std::move(refused);
  }
  if (found.number == kRoutes.size()) {
    return found.allow.empty() ? NoSuchRoute(request) : NotAllowed(request, found.allow);
  }
  const RouteEntry& route = kRoutes[found.number];
  if (const Status status = CheckQuery(route, found.target); !status.ok()) {
    return ProblemResponse(status);
  }
  if (const Status status = CheckCondition(route, request); !status.ok()) {
    return ProblemResponse(status);
  }
  if (std::optional<Response> refused = CheckBody(route.body, request)) {
    return *std::move(refused);
  }
  Handled handled = route.handler({.request = request,
                                   .captures = found.captures,
                                   .query = found.target.query,
                                   .now = now,
                                   .lines = lines,
                                   .payload_bytes_max = options_.payload_bytes_max,
                                   .user_jobs_max = options_.user_jobs_max,
                                   .service = *options_.service});
  if (const auto* status = std::get_if<Status>(&handled)) {
    return ProblemResponse(*status);
  }
  if (auto* order = std::get_if<Order>(&handled)) {
    return std::move(*order);
  }
  if (auto* order = std::get_if<AdminOrder>(&handled)) {
    return std::move(*order);
  }
  if (std::holds_alternative<ReadOn>(handled)) {
    return ReadOn{};
  }
  return std::get<Response>(std::move(handled));
}

size_t Router::BodyBytesMax(std::string_view method, std::string_view target) const {
  constexpr size_t kSmall = size_t{64} * 1024;
  // A worker may send all of its handler's output as the error; only the beginning of it is kept.
  constexpr size_t kWithError = size_t{1024} * 1024;
  const std::string_view path = target.substr(0, target.find('?'));
  if (path == "/healthz" || path == "/readyz") {
    return 0;  // anybody may ask for these
  }
  if (path.ends_with("/nack") || path.ends_with("/bury")) {
    return kWithError;
  }
  return method == "POST" && path == "/v1/jobs" ? options_.body_bytes_max : kSmall;
}

}  // namespace delayd::http

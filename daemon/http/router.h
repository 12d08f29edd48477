// daemon/http/router.h — maps requests to commands, and the engine's replies to HTTP responses.
//
// What:    one table of routes. Requests that need no engine, and those that match no route, get
//          their response here.
// Units:   base/time.h.
// Errors:  responses: 400, 404, 405 with Allow, 415; everything else is the engine's own status.
// Threads: the core thread; has no state that changes.
// Cost:    one pass over the table per request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/admin.h"
#include "daemon/engine/command.h"
#include "daemon/http/http_date.h"
#include "daemon/http/http_message.h"
#include "daemon/http/request_counts.h"
#include "daemon/http/service_report.h"
#include "daemon/http/target.h"
#include "daemon/turned_away.h"
#include "protocol/job_json.h"

namespace delayd::http {

struct RouterOptions {
  size_t payload_bytes_max = limits::kPayloadBytesDefaultMax;
  size_t body_bytes_max = limits::kRequestBodyBytesMax;
  // All must outlive the router. `service` is required; the others may be null.
  const ServiceReport* service = nullptr;
  RequestCounts* counts = nullptr;
  TurnedAway* turned_away = nullptr;  // clients without the necessary token or role
  // How many jobs a user who is not an admin may have stored; 0: no limit, nothing is counted.
  uint64_t user_jobs_max = 0;
  // Null: everybody may do everything.
  const Access* access = nullptr;
  // The Date of every answer; null: no Date header. Otherwise it must outlive the router.
  const HttpDate* date = nullptr;
};

// "POST", "v1/queues/*/lease": '*' stands for one segment.
struct RouteName {
  std::string_view method;
  std::string_view path;
};

// The form in which a reply is rendered.
enum class ReplyForm : uint8_t {
  kEnqueuedOne,
  kEnqueuedLines,
  kEnqueuedIds,  // the same, with ids only
  kOneJob,
  kLeased,
  kKicked,
  kAcked,
  kCancelledIds,
  kJobList,
  kOneQueue,
  kQueueList,
  kStats,
  kChangedMany,
  kForecast,
};

struct Order {
  engine::Command command;
  ReplyForm form{};
};

// An operator's command to the store, not to the engine.
struct AdminOrder {
  AdminCommand command;
};

// The body is read in part; Route is to be called again with the same arguments.
struct ReadOn {};

using Routed = std::variant<Order, AdminOrder, Response, ReadOn>;

// Read in milliseconds, 20 where the payloads are JSON arrays of small numbers: 30 MB of these took
// 0.6 s, while everybody waited.
inline constexpr size_t kBodyStepBytes = size_t{1} << 20;

struct FoundRoute {
  size_t number = 0;  // in RouteNames(); the number after the last: no route
  Status status;      // of parsing the target
  Target target;
  std::vector<std::string> captures;  // the segments that stand where the path has '*'
  std::string allow;                  // the methods of a known path, if this method is not one
  bool is_for_all = false;            // nobody needs a role, or a token, for this path
};

class Router {
 public:
  explicit Router(const RouterOptions& options);

  // Finds the route from the head of a request; the body is not needed.
  static FoundRoute Find(const Request& head);

  // Whether `role` is sufficient for the route. A path without a route needs no role.
  static bool HasRole(const FoundRoute& found, Role role);

  // Refuses an invalid target or an insufficient role before the body is sent.
  static std::optional<Response> RefuseHead(const FoundRoute& found, Role role);

  // Durations in the query ("due_before=1h") count from `now`. A body of many jobs is read
  // kBodyStepBytes at a time, as far as `lines` says.
  Routed Route(const Request& request,
               const FoundRoute& found,
               const Now& now,
               protocol::JobSpecLines* lines) const;

  // All routes, in the order of their numbers. The number after the last means none of them.
  static const std::vector<RouteName>& RouteNames();

  // The caller, identified by the kernel or by a token; or a refusal if the token is unknown, or
  // missing where one is required.
  std::variant<Caller, Response> Admit(const Peer& peer,
                                       const Request& request,
                                       const FoundRoute& found) const;

  // Notes a client without the necessary token or role. `cause`: the code of that problem.
  void NoteTurnedAway(const Peer& peer, std::string_view cause) const {
    if (options_.turned_away != nullptr) {
      options_.turned_away->Note(peer, cause);
    }
  }

  // Counts an answer of this route.
  void Count(size_t route, int status) const {
    if (options_.counts != nullptr) {
      options_.counts->Add(route, status);
    }
  }

  std::string_view date() const {
    return options_.date != nullptr ? options_.date->text() : std::string_view();
  }

  static Response Render(ReplyForm form, const engine::Reply& reply);
  static Response RenderAdmin(const AdminAnswer& answer);

  // Only an enqueue may have a large body. Every other body is small, even where none is wanted.
  size_t BodyBytesMax(std::string_view method, std::string_view target) const;

 private:
  RouterOptions options_;
};

}  // namespace delayd::http

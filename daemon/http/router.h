// daemon/http/router.h — which command a request means, and how the engine's reply reads in HTTP.
//
// What:    one table of routes. Requests that need no engine, and those that mean nothing, get
//          their response here.
// Units:   base/time.h.
// Errors:  responses: 400, 404, 405 with Allow, 415; everything else is the engine's own status.
// Threads: no state that changes; the core thread.
// Cost:    one pass over the table a request.
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

namespace delayd::http {

struct RouterOptions {
  size_t payload_bytes_max = limits::kPayloadBytesDefaultMax;
  size_t body_bytes_max = limits::kRequestBodyBytesMax;
  // All outlive the router. This one is needed, the others may be null.
  const ServiceReport* service = nullptr;
  RequestCounts* counts = nullptr;
  TurnedAway* turned_away = nullptr;  // for want of a token or a role
  // Jobs that a user who is no admin may have stored; 0: no limit, and nothing is counted.
  uint64_t user_jobs_max = 0;
  // Null: everybody may do everything.
  const Access* access = nullptr;
  // Of every answer; null: they have no Date. Else it outlives the router.
  const HttpDate* date = nullptr;
};

// "POST", "v1/queues/*/lease": '*' stands for one segment.
struct RouteName {
  std::string_view method;
  std::string_view path;
};

// In which form the reply goes out.
enum class ReplyForm : uint8_t {
  kEnqueuedOne,
  kEnqueuedLines,
  kEnqueuedIds,  // the same, with ids alone
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

// Not for the engine: an operator's command to the store.
struct AdminOrder {
  AdminCommand command;
};

using Routed = std::variant<Order, AdminOrder, Response>;

struct FoundRoute {
  size_t number = 0;  // in RouteNames(); behind the last: none
  Status status;      // of the target
  Target target;
  std::vector<std::string> captures;  // the segments that stand where the path has '*'
  std::string allow;                  // the methods that the path takes, if it is one
};

class Router {
 public:
  explicit Router(const RouterOptions& options);

  // What the head of a request says is asked for; nothing of its body.
  static FoundRoute Find(const Request& head);

  // False: it needs another one. What is no route needs none.
  static bool HasRole(const FoundRoute& found, Role role);

  // What cannot be meant, and whoever may not ask it, need not send the body.
  static std::optional<Response> RefuseHead(const FoundRoute& found, Role role);

  // `now`: what durations in the query ("due_before=1h") count from.
  Routed Route(const Request& request, const FoundRoute& found, const Now& now) const;

  // All routes, in order of their numbers. The number behind the last means none of them.
  static const std::vector<RouteName>& RouteNames();

  // Who asks, by the kernel's word or the token; or the refusal of a token that is not
  // known, or missing where there must be one.
  std::variant<Caller, Response> Admit(const Peer& peer,
                                       const Request& request,
                                       const FoundRoute& found) const;

  // For want of a token, or of a role. `cause`: the code of that problem.
  void NoteTurnedAway(const Peer& peer, std::string_view cause) const {
    if (options_.turned_away != nullptr) {
      options_.turned_away->Note(peer, cause);
    }
  }

  // An answer of this route goes out.
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

  // Only jobs may come in bulk; every other body is small, also where it is not wanted.
  size_t BodyBytesMax(std::string_view method, std::string_view target) const;

 private:
  RouterOptions options_;
};

}  // namespace delayd::http

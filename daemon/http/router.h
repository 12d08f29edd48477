// daemon/http/router.h — which command a request means, and how the engine's reply reads in HTTP.
//
// What:    one table of routes (docs/architecture.md, section "Front ends"). Requests that need no
//          engine, and those that mean nothing, get their response here.
// Units:   base/time.h.
// Errors:  responses: 400, 404, 405 with Allow, 415; everything else is the engine's own status.
// Threads: no state that changes; the core thread.
// Cost:    one pass over the table a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/admin.h"
#include "daemon/engine/command.h"
#include "daemon/http/http_message.h"

namespace delayd::http {

struct RouterOptions {
  size_t payload_bytes_max = limits::kPayloadBytesDefaultMax;
  size_t body_bytes_max = limits::kRequestBodyBytesMax;
  std::string version;  // of the daemon, for health
  // OK, or why new jobs are refused; empty: always OK.
  std::function<Status()> readiness;
};

// In which form the reply goes out.
enum class ReplyForm : uint8_t {
  kEnqueuedOne,
  kEnqueuedLines,
  kOneJob,
  kLeased,
  kJobList,
  kOneQueue,
  kQueueList,
  kStats,
};

struct Order {
  engine::Command command;
  ReplyForm form{};
};

// Not for the engine: an operator's command to the store.
struct AdminOrder {
  AdminCommand command;
};

class Router {
 public:
  explicit Router(const RouterOptions& options) : options_(options) {}

  // `now`: what durations in the query ("due_before=1h") count from.
  std::variant<Order, AdminOrder, Response> Route(const Request& request, const Now& now) const;

  static Response Render(ReplyForm form, const engine::Reply& reply);
  static Response RenderAdmin(const AdminAnswer& answer);

  // Only jobs may come in bulk; every other body is small.
  size_t BodyBytesMax(std::string_view target) const;

 private:
  RouterOptions options_;
};

}  // namespace delayd::http

#include "daemon/front_ends.h"

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/beanstalk/session.h"
#include "daemon/command_line.h"
#include "daemon/config_values.h"
#include "daemon/http/http_session.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/passed_sockets.h"
#include "protocol/beanstalk/reply_writer.h"

namespace delayd {

// The HTTP API on its sockets: what all its connections share.
class FrontEnds::HttpApi {
 public:
  explicit HttpApi(const FrontEndParts& parts)
      : router_({.payload_bytes_max = parts.config->limits.payload,
                 .body_bytes_max = parts.config->limits.request_body,
                 .service = parts.service,
                 .counts = parts.counts,
                 .turned_away = &turned_away_,
                 .user_jobs_max = parts.config->limits.jobs_per_user,
                 .access = parts.access,
                 .date = &date_}),
        tls_(parts.tls) {
    const auto& limits = parts.config->limits;
    unix_.line_bytes_max = limits.request_line;
    unix_.head_bytes_max = limits.request_header;
    unix_.body_bytes_max = [this](std::string_view method, std::string_view target) {
      return router_.BodyBytesMax(method, target);
    };
    tcp_ = unix_;
    // A browser can reach a loopback port under any name that resolves to it, but no web page may
    // use it. With TLS the certificate restricts the names.
    if (tls_ == nullptr) {
      tcp_.hosts = {"localhost", "127.0.0.1", "::1"};
    }
    http::AppendResponse(
        http::ProblemResponse(
            503,
            Unavailable("the daemon has as many connections as limits.connections, or its limit of "
                        "open files, allows; close some, or raise it",
                        "too_many_connections")),
        {},
        false,
        "close",
        &no_room_);
  }

  std::string NameOf(const Listener& listener) const {
    return listener.is_tcp() && tls_ != nullptr ? "https://" + listener.address() : listener.name();
  }

  static Status MayListenOn(const Listener& /*listener*/) { return OkStatus(); }

  void ListenOn(Listener listener, Server* server) {
    AddHostOf(listener);
    const http::ReaderOptions& options = listener.is_tcp() ? tcp_ : unix_;
    const bool with_tls = listener.is_tcp() && tls_ != nullptr;
    const auto make = [this, &options, with_tls]() -> std::unique_ptr<Session> {
      auto session = std::make_unique<http::HttpSession>(options, router_);
      return with_tls ? tls_->Wrap(std::move(session)) : std::move(session);
    };
    server->Listen(std::move(listener), make, with_tls ? std::string(TlsDoor::NoRoom()) : no_room_);
  }

  void BeginTurn(const Now& now) {
    date_.Set(now.wall);
    Tell("requests are refused: a token that is not known, or a role that is missing",
         &turned_away_,
         now.boot);
    if (tls_ != nullptr) {
      Tell("TLS connections fail", tls_->last_failed(), now.boot);
    }
  }

 private:
  // Loopback has more addresses than 127.0.0.1.
  void AddHostOf(const Listener& listener) {
    if (listener.is_tcp() && !tcp_.hosts.empty()) {
      const StatusOr<ListenAddress> address = ParseListenAddress(listener.address());
      DELAYD_CHECK(address.ok());
      tcp_.hosts.push_back(address->host);
    }
  }

  static void Tell(std::string_view message, TurnedAway* clients, BootTime now) {
    if (clients->IsToBeTold(now)) {
      log::Warn(message,
                {{"count", std::exchange(clients->untold, 0)},
                 {"last_peer", clients->last_peer},
                 {"last_cause", clients->last_cause}});
    }
  }

  http::HttpDate date_;
  TurnedAway turned_away_;
  http::Router router_;
  http::ReaderOptions unix_;
  http::ReaderOptions tcp_;
  std::string no_room_;
  TlsDoor* const tls_;
};

// The beanstalk protocol on its sockets.
class FrontEnds::BeanstalkApi {
 public:
  explicit BeanstalkApi(const FrontEndParts& parts)
      : config_(*parts.config),
        hub_({.job_bytes_max = parts.config->limits.payload,
              .version = std::string(Version()),
              .started = parts.started,
              .user_jobs_max = parts.config->limits.jobs_per_user,
              .access = parts.access}) {}

  static std::string NameOf(const Listener& listener) {
    return "beanstalk:" + (listener.is_tcp() ? listener.address() : listener.name());
  }

  // The configuration has been checked, but it does not list passed sockets.
  Status MayListenOn(const Listener& listener) const {
    return listener.is_tcp() ? CheckBeanstalkOverTcp(config_) : OkStatus();
  }

  void ListenOn(Listener listener, Server* server) {
    server->Listen(
        std::move(listener),
        [this] { return std::make_unique<beanstalk::BeanstalkSession>(&hub_); },
        std::string(beanstalk::reply::kOutOfMemory));
  }

 private:
  const Config& config_;
  beanstalk::Hub hub_;
};

namespace {

// Takes the sockets that the service manager opened under `name`, and opens the others that the
// configuration names. `names` is for the log.
template <typename Api>
Status OpenListeners(std::string_view name,
                     const ListenSetting& socket,
                     const ListenSetting& listen,
                     PassedSockets* passed,
                     Api* api,
                     Server* server,
                     std::string* names) {
  const auto add = [&](StatusOr<std::optional<Listener>> listener) -> Status {
    DELAYD_RETURN_IF_ERROR(listener.status());
    if (listener->has_value()) {
      (*listener)->set_label(api->NameOf(**listener));
      DELAYD_RETURN_IF_ERROR(api->MayListenOn(**listener).WithContext((*listener)->label()));
      *names += (names->empty() ? "" : " ") + (*listener)->label();
      api->ListenOn(std::move(**listener), server);
    }
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(add(passed->Unix(name, socket)));
  return add(passed->Tcp(name, listen));
}

}  // namespace

FrontEnds::FrontEnds(const FrontEndParts& parts)
    : config_(*parts.config),
      http_(std::make_unique<HttpApi>(parts)),
      beanstalk_(std::make_unique<BeanstalkApi>(parts)) {}

FrontEnds::~FrontEnds() = default;

StatusOr<std::string> FrontEnds::ListenOn(Server* server) {
  StatusOr<PassedSockets> passed = PassedSockets::FromEnvironment();
  DELAYD_RETURN_IF_ERROR(passed.status());
  DELAYD_RETURN_IF_ERROR(passed->CheckNames({"api", "beanstalk"}));
  const Reach reach = config_.is_fit_for_network() ? Reach::kAnywhere : Reach::kLoopback;
  std::string names;
  DELAYD_RETURN_IF_ERROR(OpenListeners("api",
                                       {"api.socket", config_.api.socket},
                                       {"api.listen", config_.api.listen, reach},
                                       &*passed,
                                       http_.get(),
                                       server,
                                       &names));
  DELAYD_RETURN_IF_ERROR(OpenListeners("beanstalk",
                                       {"beanstalk.socket", config_.beanstalk.socket},
                                       {"beanstalk.listen", config_.beanstalk.listen},
                                       &*passed,
                                       beanstalk_.get(),
                                       server,
                                       &names));
  DELAYD_RETURN_IF_ERROR(passed->CheckAllTaken());
  return names;
}

void FrontEnds::BeginTurn(const Now& now) {
  http_->BeginTurn(now);
}

}  // namespace delayd

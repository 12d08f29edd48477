#include "daemon/config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/size_text.h"
#include "daemon/config_values.h"
#include "protocol/duration.h"

#include <sys/un.h>

namespace delayd {

namespace {

constexpr int64_t kSecondMs = 1000;
constexpr int64_t kDayMs = 24 * 3600 * kSecondMs;

Status SetPath(std::string_view text, std::string* path) {
  if (text.empty()) {
    return InvalidArgument("expected a path, found nothing");
  }
  *path = text;
  return OkStatus();
}

// The kernel stores a socket path in an array of fixed size.
Status SetSocketPath(std::string_view text, std::string* path) {
  constexpr size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (text.size() > kPathBytesMax) {
    return InvalidArgument("a socket path has at most " + std::to_string(kPathBytesMax) +
                           " bytes, this one has " + std::to_string(text.size()) +
                           "; choose a shorter one");
  }
  *path = text;
  return OkStatus();
}

Status SetListen(std::string_view text, std::string* listen) {
  if (!text.empty()) {
    DELAYD_RETURN_IF_ERROR(ParseListenAddress(text).status());
  }
  *listen = text;
  return OkStatus();
}

Status SetLoopbackListen(std::string_view text, std::string* listen) {
  if (!text.empty()) {
    const StatusOr<ListenAddress> address = ParseListenAddress(text, "11300");
    DELAYD_RETURN_IF_ERROR(address.status());
    if (!IsLoopback(*address)) {
      return InvalidArgument("'" + std::string(text) +
                             "' can be reached from other machines, and the beanstalk protocol has "
                             "no login; listen on a loopback address, 127.0.0.1 or [::1]");
    }
  }
  *listen = text;
  return OkStatus();
}

template <uint64_t kMin, uint64_t kMax>
Status SetSizeOf(std::string_view text, uint64_t* size) {
  const StatusOr<uint64_t> parsed = ParseSize(text, kMin, kMax);
  DELAYD_RETURN_IF_ERROR(parsed.status());
  *size = *parsed;
  return OkStatus();
}

template <int64_t kMinMs, int64_t kMaxMs>
Status SetDurationOf(std::string_view text, Millis* duration) {
  return SetDuration(text, Millis(kMinMs), Millis(kMaxMs), duration);
}

template <uint32_t kMin, uint32_t kMax>
Status SetCountOf(std::string_view text, uint32_t* count) {
  return SetCount(text, kMin, kMax, count);
}

Status SetLogLevel(std::string_view text, log::Level* level) {
  constexpr std::array<std::pair<std::string_view, log::Level>, 4> kLevels = {
      {{"debug", log::Level::kDebug},
       {"info", log::Level::kInfo},
       {"warn", log::Level::kWarn},
       {"error", log::Level::kError}}};
  for (const auto& [name, value] : kLevels) {
    if (name == text) {
      *level = value;
      return OkStatus();
    }
  }
  return InvalidArgument("expected debug, info, warn or error, found '" + std::string(text) + "'");
}

Status SetLogFormat(std::string_view text, log::Format* format) {
  if (text != "text" && text != "json") {
    return InvalidArgument("expected text or json, found '" + std::string(text) + "'");
  }
  *format = text == "json" ? log::Format::kJson : log::Format::kText;
  return OkStatus();
}

Status SetText(std::string_view text, std::string* value) {
  *value = text;
  return OkStatus();
}

Status SetRole(std::string_view text, Role* role) {
  const std::optional<Role> parsed = ParseRole(text);
  if (!parsed) {
    return InvalidArgument("expected none, read, enqueue or admin, found '" + std::string(text) +
                           "'");
  }
  *role = *parsed;
  return OkStatus();
}

// `Field` is a stateless function that returns the key's field of a Config, to set or compare it.
template <auto kSet, typename Field>
constexpr ConfigKey Key(std::string_view name,
                        std::string_view flag,
                        std::string_view kind,
                        std::string_view what,
                        Field /*field*/) {
  return {.name = name,
          .flag = flag,
          .kind = kind,
          .what = what,
          .set = [](std::string_view text, Config* c) { return kSet(text, &Field{}(*c)); },
          .same = [](const Config& a, const Config& b) { return Field{}(a) == Field{}(b); }};
}

// The order is the order of config/delayd.yaml and of --help.
constexpr std::array kKeys = std::to_array<ConfigKey>({
    Key<SetPath>(
        "data_dir", "--data-dir", "PATH", "where the jobs are stored", [](auto& c) -> auto& {
          return c.data_dir;
        }),
    Key<SetSizeOf<0, uint64_t{1} << 40>>(
        "storage.reserve",
        "",
        "SIZE",
        "below this much free space no new job is taken; 0: off",
        [](auto& c) -> auto& { return c.storage.reserve; }),
    Key<SetSocketPath>(
        "api.socket",
        "--api-socket",
        "PATH",
        "Unix socket of the HTTP API; empty: off",
        [](auto& c) -> auto& { return c.api.socket; }),
    Key<SetListen>(
        "api.listen",
        "--api-listen",
        "ADDRESS:PORT",
        "TCP address of the HTTP API, loopback unless there are TLS and tokens; empty: off",
        [](auto& c) -> auto& { return c.api.listen; }),
    Key<SetText>(
        "tls.certificate",
        "",
        "PATH",
        "certificate that api.listen shows, with its chain, in PEM; empty: no TLS",
        [](auto& c) -> auto& { return c.tls.certificate; }),
    Key<SetText>(
        "tls.key",
        "",
        "PATH",
        "the certificate's key in PEM; must not be readable for everybody",
        [](auto& c) -> auto& { return c.tls.key; }),
    Key<SetLoopbackListen>(
        "beanstalk.listen",
        "--beanstalk-listen",
        "ADDRESS:PORT",
        "TCP address for beanstalk clients, loopback only; empty: off",
        [](auto& c) -> auto& { return c.beanstalk.listen; }),
    Key<SetSocketPath>(
        "beanstalk.socket",
        "",
        "PATH",
        "Unix socket for beanstalk clients; empty: off",
        [](auto& c) -> auto& { return c.beanstalk.socket; }),
    {"log.level",
     "--log-level",
     "LEVEL",
     "debug, info, warn or error",
     [](std::string_view text, Config* c) { return SetLogLevel(text, &c->log.level); }},
    Key<SetLogFormat>(
        "log.format", "", "FORMAT", "text or json", [](auto& c) -> auto& { return c.log.format; }),
    Key<SetDurationOf<1, kDayMs>>(
        "log.slow_turn",
        "",
        "DURATION",
        "a turn of the core thread that takes longer is logged",
        [](auto& c) -> auto& { return c.slow.turn; }),
    Key<SetDurationOf<1, kDayMs>>(
        "log.slow_commit",
        "",
        "DURATION",
        "a commit that takes longer is logged",
        [](auto& c) -> auto& { return c.slow.commit; }),
    Key<SetDurationOf<kSecondMs, 366 * kDayMs>>(
        "memory.horizon",
        "",
        "DURATION",
        "jobs due later than this from now stay on disk only",
        [](auto& c) -> auto& { return c.memory.horizon; }),
    Key<SetSizeOf<uint64_t{16} << 20, uint64_t{1} << 40>>(
        "memory.budget", "", "SIZE", "memory for jobs that are due soon", [](auto& c) -> auto& {
          return c.memory.budget;
        }),
    Key<SetDurationOf<0, kDayMs>>(
        "processors.awake",
        "",
        "DURATION",
        "how long after a request the processors are kept from sleeping; 0s: off",
        [](auto& c) -> auto& { return c.processors.awake; }),
    Key<SetText>(
        "access.read",
        "",
        "LIST",
        "users and @groups that may look at everything, and no more",
        [](auto& c) -> auto& { return c.access.read; }),
    Key<SetText>(
        "access.enqueue",
        "",
        "LIST",
        "users and @groups that may also enqueue, cancel and work jobs",
        [](auto& c) -> auto& { return c.access.enqueue; }),
    Key<SetText>(
        "access.admin",
        "",
        "LIST",
        "users and @groups that may do everything, as root and the daemon's own user may",
        [](auto& c) -> auto& { return c.access.admin; }),
    Key<SetRole>(
        "access.others",
        "",
        "ROLE",
        "role of everybody else who can open a socket: none, read, enqueue or admin",
        [](auto& c) -> auto& { return c.access.others; }),
    Key<SetText>(
        "access.token_file",
        "",
        "PATH",
        "file of tokens, without which TCP clients are refused; empty: none",
        [](auto& c) -> auto& { return c.access.token_file; }),
    Key<SetDurationOf<0, 36500 * kDayMs>>(
        "clock.max_jump",
        "",
        "DURATION",
        "a wall clock further ahead than it can be is held; 0s: never",
        [](auto& c) -> auto& { return c.clock.max_jump; }),
    Key<SetDurationOf<kSecondMs, 366 * kDayMs>>(
        "clock.hold_max",
        "",
        "DURATION",
        "after this a held clock is believed all the same",
        [](auto& c) -> auto& { return c.clock.hold_max; }),
    Key<SetCountOf<0, 10'000>>(
        "metrics.queues",
        "",
        "COUNT",
        "queues that metrics name; the others are summed up as 'other'",
        [](auto& c) -> auto& { return c.metrics.queues; }),
    Key<SetDurationOf<kSecondMs, kDayMs>>(
        "health.commit_stuck",
        "",
        "DURATION",
        "a commit that takes longer makes /healthz and /readyz answer 503",
        [](auto& c) -> auto& { return c.health.commit_stuck; }),
    Key<SetSizeOf<1, limits::kPayloadBytesHardMax>>(
        "limits.payload", "", "SIZE", "largest payload of one job", [](auto& c) -> auto& {
          return c.limits.payload;
        }),
    Key<SetSizeOf<1024, 64 * 1024>>(
        "limits.request_line", "", "SIZE", "longest request line of HTTP", [](auto& c) -> auto& {
          return c.limits.request_line;
        }),
    Key<SetSizeOf<2048, 256 * 1024>>(
        "limits.request_header",
        "",
        "SIZE",
        "largest head of a request, its line included",
        [](auto& c) -> auto& { return c.limits.request_header; }),
    Key<SetSizeOf<64 * 1024, uint64_t{256} << 20>>(
        "limits.request_body",
        "",
        "SIZE",
        "largest body of a request, many jobs at once included",
        [](auto& c) -> auto& { return c.limits.request_body; }),
    Key<SetCountOf<1, 1'000'000>>(
        "limits.connections", "", "COUNT", "connections open at once", [](auto& c) -> auto& {
          return c.limits.connections;
        }),
    Key<SetCountOf<0, 1'000'000'000>>(
        "limits.jobs_per_user",
        "",
        "COUNT",
        "jobs that a user who is no admin may have stored; 0: no quota",
        [](auto& c) -> auto& { return c.limits.jobs_per_user; }),
    Key<SetDurationOf<kSecondMs, kDayMs>>(
        "limits.idle",
        "",
        "DURATION",
        "a connection without requests is closed after this",
        [](auto& c) -> auto& { return c.limits.idle; }),
});

}  // namespace

std::span<const ConfigKey> ConfigKeys() {
  static const std::vector<ConfigKey> all = [] {
    std::vector<ConfigKey> keys(kKeys.begin(), kKeys.end());
    for (const QueueKey& key : QueueKeys()) {
      keys.push_back({.name = key.default_name,
                      .flag = {},
                      .kind = key.kind,
                      .what = key.what,
                      .set = nullptr,
                      .same = nullptr,
                      .of_queue = &key});
    }
    return keys;
  }();
  return all;
}

const ConfigKey* FindConfigKey(std::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

std::vector<std::string_view> KeysForRestart(const Config& running, const Config& read) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : kKeys) {
    if (key.same != nullptr && !key.same(running, read)) {
      names.push_back(key.name);
    }
  }
  return names;
}

std::string EnvironmentName(std::string_view key) {
  std::string name(kEnvironmentPrefix);
  for (const char c : key) {
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return name;
}

std::string Config::PlaceOf(std::string_view key) const {
  const auto found = origins.find(key);
  if (found == origins.end()) {
    return std::string(key);
  }
  const ConfigKey* known = FindConfigKey(key);
  const std::string& where = found->second;
  const bool names_key =
      where == EnvironmentName(key) || (known != nullptr && where == known->flag);
  return names_key ? where : where + ": " + std::string(key);
}

void ConfigReader::Set(const ConfigKey& key, std::string_view text, std::string where) {
  const Status status = key.of_queue != nullptr ? key.of_queue->set(text, &config_.defaults)
                                                : key.set(text, &config_);
  config_.origins.insert_or_assign(std::string(key.name), std::move(where));
  if (!status.ok()) {
    Fail(config_.PlaceOf(key.name), status.message());
  }
}

void ConfigReader::Finish() {
  if (config_.api.socket.empty() && config_.api.listen.empty()) {
    Fail(Where("api.socket"),
         "api.socket: both api.socket and api.listen are empty, so nobody could reach the daemon; "
         "set one of them");
  }
  FinishListen();
  FinishQueues();
  if (config_.limits.request_line > config_.limits.request_header) {
    Fail(Where("limits.request_line", "limits.request_header"),
         "limits.request_line: must not exceed limits.request_header, which is " +
             FormatSize(config_.limits.request_header) + "; it is " +
             FormatSize(config_.limits.request_line));
  }
  // Base64 turns three bytes into four, and the JSON around the payload needs room too.
  const uint64_t body_min = config_.limits.payload / 3 * 4 + 16 * 1024;
  if (config_.limits.request_body < body_min) {
    Fail(Where("limits.request_body", "limits.payload"),
         "limits.request_body: a job with the largest payload in base64 needs " +
             FormatSize((body_min + 1023) / 1024 * 1024) + "; raise it, or lower limits.payload");
  }
}

Status CheckBeanstalkOverTcp(const Config& config) {
  const bool tokens = !config.access.token_file.empty();
  if (!tokens && config.access.others >= Role::kEnqueue) {
    return OkStatus();
  }
  return InvalidArgument(
      std::string("every beanstalk client over TCP would be hung up on, since the protocol has no "
                  "login and ") +
      (tokens ? "access.token_file asks all who come over TCP for a token"
              : "access.others is less than enqueue") +
      "; let its clients use beanstalk.socket");
}

void ConfigReader::FinishListen() {
  if (config_.tls.certificate.empty() != config_.tls.key.empty()) {
    const std::string_view set = config_.tls.key.empty() ? "tls.certificate" : "tls.key";
    Fail(Where(set), std::string(set) + ": TLS needs tls.certificate and tls.key; set both");
  }
  const auto own = [this](std::string_view key, std::string_view other) {
    Fail(Where(key),
         std::string(key) + ": it is that of " + std::string(other) +
             "; each protocol needs an address of its own, or leave one of them empty");
  };
  if (!config_.beanstalk.socket.empty() && config_.beanstalk.socket == config_.api.socket) {
    own("beanstalk.socket", "api.socket");
  }
  const StatusOr<ListenAddress> address = ParseListenAddress(config_.api.listen);
  const StatusOr<ListenAddress> beanstalk = ParseListenAddress(config_.beanstalk.listen);
  if (address.ok() && beanstalk.ok() && address->port != 0 && address->port == beanstalk->port &&
      address->host == beanstalk->host) {
    own("beanstalk.listen", "api.listen");
  }
  if (const Status status = CheckBeanstalkOverTcp(config_);
      !status.ok() && beanstalk.ok() && IsLoopback(*beanstalk)) {
    Fail(Where("beanstalk.listen"), "beanstalk.listen: " + status.message());
  }
  if (!address.ok() || IsLoopback(*address)) {
    return;  // an invalid address has been reported already; a loopback address needs no check
  }
  if (!config_.is_fit_for_network()) {
    Fail(Where("api.listen"),
         "api.listen: '" + config_.api.listen +
             "' can be reached from other machines, which needs TLS and tokens; set "
             "tls.certificate, tls.key and access.token_file, or listen on 127.0.0.1 or [::1]");
  }
}

void ConfigReader::Fail(std::string_view where, std::string_view message) {
  errors_.push_back(std::string(where) + ": " + std::string(message));
}

std::string ConfigReader::Where(std::string_view key, std::string_view other) const {
  for (const std::string_view name : {key, other}) {
    if (const auto found = config_.origins.find(name); found != config_.origins.end()) {
      return found->second;
    }
  }
  return "defaults";
}

}  // namespace delayd

#include "protocol/server_address.h"

#include <charconv>
#include <cstdint>

#include "protocol/nearest.h"

#include <sys/un.h>

namespace delayd::protocol {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kAddressExample = "; write it like http://127.0.0.1:11380";
constexpr std::string_view kSocketExample =
    "; write it like 127.0.0.1:11300, [::1]:11300 or unix:/run/beanstalkd.sock";

// The message leaves out whatever precedes the @: it may be a password.
Status RefuseAddress(std::string_view text, const std::string& why) {
  const size_t user_end = text.starts_with(kUnix) ? std::string_view::npos : text.rfind('@');
  if (user_end != std::string_view::npos) {
    return InvalidArgument(
        "server address '..." + Quoted(text.substr(user_end)).substr(1) + " " + why,
        "invalid_server");
  }
  return InvalidArgument("server address " + Quoted(text) + " " + why, "invalid_server");
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

StatusOr<ServerAddress> ParseUnix(std::string_view text) {
  ServerAddress address;
  address.text = text;
  address.path = text.substr(kUnix.size());
  if (address.path.empty()) {
    return RefuseAddress(text, "has no path; write it like unix:/run/delayd/delayd.sock");
  }
  if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
    return RefuseAddress(text,
                         "has a path of " + std::to_string(address.path.size()) +
                             " bytes; a socket's path may have at most " +
                             std::to_string(sizeof(sockaddr_un::sun_path) - 1));
  }
  return address;
}

// Reads host and port from `rest`; without a port, `address` keeps its own.
Status ReadHostPort(std::string_view rest, std::string_view example, ServerAddress* address) {
  const std::string& text = address->text;
  const bool bracketed = rest.starts_with('[');
  const size_t host_end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && host_end == std::string_view::npos) {
    return RefuseAddress(text, "has no ']' after the address");
  }
  address->host = bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  const std::string_view behind =
      host_end == std::string_view::npos ? "" : rest.substr(bracketed ? host_end + 1 : host_end);
  if (address->host.empty()) {
    return RefuseAddress(text, "is not understood" + std::string(example));
  }
  if (behind.empty()) {
    return address->port.empty() ? RefuseAddress(text, "has no port" + std::string(example))
                                 : OkStatus();
  }
  if (behind.front() != ':' || !IsPort(behind.substr(1))) {
    return RefuseAddress(text, "has no good port" + std::string(example));
  }
  address->port = behind.substr(1);
  return OkStatus();
}

StatusOr<ServerAddress> ParseHttp(std::string_view text) {
  const bool tls = text.starts_with(kHttps);
  std::string_view rest = text.substr(tls ? kHttps.size() : kHttp.size());
  if (rest.ends_with('/')) {
    rest.remove_suffix(1);
  }
  if (rest.find('@') != std::string_view::npos) {
    return RefuseAddress(text,
                         "has a user, which has no place there" + std::string(kAddressExample));
  }
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return RefuseAddress(
        text, "has a path or query, which has no place there" + std::string(kAddressExample));
  }
  ServerAddress address;
  address.text = text;
  address.port = kDefaultPort;
  address.tls = tls;
  DELAYD_RETURN_IF_ERROR(ReadHostPort(rest, kAddressExample, &address));
  return address;
}

}  // namespace

StatusOr<ServerAddress> ParseServerAddress(std::string_view text) {
  if (text.starts_with(kUnix)) {
    return ParseUnix(text);
  }
  if (text.starts_with(kHttp) || text.starts_with(kHttps)) {
    return ParseHttp(text);
  }
  if (text.starts_with('/')) {
    return RefuseAddress(text, "lacks its kind; write unix:" + std::string(text));
  }
  return RefuseAddress(
      text,
      "is not understood; write unix:/run/delayd/delayd.sock, http://127.0.0.1:11380 or "
      "https://HOST:11380");
}

StatusOr<ServerAddress> ParseSocketAddress(std::string_view text, std::string_view server) {
  ServerAddress address;
  if (text.starts_with(kUnix)) {
    DELAYD_ASSIGN_OR_RETURN(address, ParseUnix(text));
  } else {
    address.text = text;
    DELAYD_RETURN_IF_ERROR(ReadHostPort(text, kSocketExample, &address));
  }
  address.server = server;
  return address;
}

std::string HostHeader(const ServerAddress& address) {
  if (!address.path.empty()) {
    return "localhost";
  }
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address.host + "]" : address.host) + ":" + address.port;
}

}  // namespace delayd::protocol

// protocol/server_address.h — where a daemon listens, as users write it.
//
// Errors:  kInvalidArgument "invalid_server" with the accepted forms.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace delayd::protocol {

inline constexpr std::string_view kDefaultServer = "unix:/run/delayd/delayd.sock";
inline constexpr std::string_view kDefaultPort = "11380";

struct ServerAddress {
  std::string text;               // as given
  std::string server = "delayd";  // the program expected to listen there, for messages
  std::string path;               // of a Unix socket; empty: TCP
  std::string host;               // without brackets
  std::string port;
  bool tls = false;
};

// "unix:/run/delayd/delayd.sock", "http://127.0.0.1:11380" or "https://jobs.example:11380".
StatusOr<ServerAddress> ParseServerAddress(std::string_view text);
// "127.0.0.1:11300", "[::1]:11300" or "unix:/run/beanstalkd.sock": the address of a `server` that
// does not speak HTTP.
StatusOr<ServerAddress> ParseSocketAddress(std::string_view text, std::string_view server);
// The value of the Host header.
std::string HostHeader(const ServerAddress& address);

}  // namespace delayd::protocol

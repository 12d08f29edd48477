// daemon/listener.h — the sockets that the daemon listens on.
//
// What:    a Unix socket with mode 0660, or a TCP socket, which is limited to loopback unless TLS
//          and tokens guard it. A socket file left by a dead daemon is replaced; one on which a
//          process answers never is. A lock file beside the socket keeps simultaneous starts apart.
//          A socket passed by the service manager is used as it is: its file belongs to the manager
//          and stays.
// Errors:  kFailedPrecondition "socket_in_use", or what bind(2) says, each with the path or address
//          and the cure.
// Threads: the core thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace delayd {

// From where a TCP socket may be reachable.
enum class Reach : uint8_t {
  kLoopback,  // this machine only
  kAnywhere,  // its protocol has TLS and tokens
};

class Listener {
 public:
  // `key` is the setting that errors mention.
  static StatusOr<Listener> OpenUnix(const std::string& path, std::string_view key = "api.socket");
  // `address` as ParseListenAddress (daemon/config_values.h) takes it; port 0 is any free one.
  static StatusOr<Listener> OpenTcp(std::string_view address,
                                    Reach reach = Reach::kLoopback,
                                    std::string_view key = "api.listen");
  // A listening stream socket that was passed to us: a Unix socket, or TCP within `reach`.
  static StatusOr<Listener> Adopt(UniqueFd fd, Reach reach = Reach::kLoopback);

  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();  // removes the socket file

  // Non-blocking.
  int fd() const { return fd_.get(); }

  bool is_tcp() const { return is_tcp_; }

  // "unix:/run/delayd/delayd.sock" or "http://127.0.0.1:11380", with the actual port.
  const std::string& name() const { return name_; }

  // The name in the log: name(), unless the owner, which knows the protocol, has set another.
  const std::string& label() const { return label_.empty() ? name_ : label_; }

  void set_label(std::string label) { label_ = std::move(label); }

  // TCP only: "127.0.0.1:11380".
  std::string address() const { return name_.substr(sizeof "http://" - 1); }

 private:
  Listener() = default;

  UniqueFd fd_;
  UniqueFd lock_;
  bool is_tcp_ = false;
  std::string path_;  // the socket file to remove at the end; empty: none of ours
  std::string name_;
  std::string label_;
};

}  // namespace delayd

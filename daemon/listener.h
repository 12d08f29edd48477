// daemon/listener.h — the sockets that the daemon listens on.
//
// What:    a Unix socket with mode 0660, or a TCP socket, on loopback unless TLS and tokens guard
// it.
//          A socket file that a dead daemon left is replaced; one that somebody answers on never
//          is. Two starts at the same moment are kept apart by a lock file beside the socket. A
//          socket that the service manager opened and passed is taken as it is: its file is the
//          manager's, and stays.
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

// Who may be let near a TCP socket.
enum class Reach : uint8_t {
  kLoopback,  // this machine only
  kAnywhere,  // what is spoken there has TLS and tokens
};

class Listener {
 public:
  // `key` is the setting that errors name.
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

  // "unix:/run/delayd/delayd.sock" or "http://127.0.0.1:11380", with the port that was got.
  const std::string& name() const { return name_; }

  // What the log calls it: the name, until the owner, who knows what is spoken there, says another.
  const std::string& label() const { return label_.empty() ? name_ : label_; }

  void set_label(std::string label) { label_ = std::move(label); }

  // Of TCP: "127.0.0.1:11380".
  std::string address() const { return name_.substr(sizeof "http://" - 1); }

 private:
  Listener() = default;

  UniqueFd fd_;
  UniqueFd lock_;
  bool is_tcp_ = false;
  std::string path_;  // of the file to remove in the end; empty: none is ours
  std::string name_;
  std::string label_;
};

}  // namespace delayd

// daemon/passed_sockets.h — sockets that the service manager opened for us (socket activation).
//
// What:    a socket unit passes listening sockets under names (FileDescriptorName=). Each takes the
//          place of the address that the configuration has for that name and kind; the two must be
//          the same, or the configured one empty. One that nothing asks for refuses the start.
// Errors:  kFailedPrecondition "passed_socket" with what was passed, what was wanted, and the cure.
// Threads: the core thread, before it turns.
// Source:  sd_listen_fds_with_names(3), systemd.socket(5).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "daemon/listener.h"

namespace delayd {

struct PassedSocket {
  std::string name;  // as the socket unit calls it
  UniqueFd fd;
};

// A setting that names where to listen.
struct ListenSetting {
  std::string_view key;  // "api.socket"
  std::string_view value;
  Reach reach = Reach::kLoopback;  // of TCP
};

class PassedSockets {
 public:
  explicit PassedSockets(std::vector<PassedSocket> sockets) : sockets_(std::move(sockets)) {}

  // What this process was given; they are no child's any more.
  static StatusOr<PassedSockets> FromEnvironment();

  // Before any is opened: where it had the path of one that was passed under another name, that one
  // would be taken for another daemon's.
  Status CheckNames(std::initializer_list<std::string_view> known) const;
  // The socket passed under `name`, else one opened as the setting says; none when there is
  // neither.
  StatusOr<std::optional<Listener>> Unix(std::string_view name, const ListenSetting& setting);
  StatusOr<std::optional<Listener>> Tcp(std::string_view name, const ListenSetting& setting);
  // After all were asked for.
  Status CheckAllTaken() const;

 private:
  // Negative when there is none.
  UniqueFd Take(std::string_view name, bool tcp);

  std::vector<PassedSocket> sockets_;
};

}  // namespace delayd

// daemon/passed_sockets.h — sockets that the service manager opened for us (socket activation).
//
// What:    a socket unit passes listening sockets under names (FileDescriptorName=). Each replaces
//          the configured address of that name and kind; the two must be equal, or the configured
//          one empty. A socket that the daemon does not ask for prevents the start.
// Errors:  kFailedPrecondition "passed_socket" with what was passed, what was wanted, and the cure.
// Threads: the core thread, before the first turn.
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

  // The sockets passed to this process. Child processes no longer inherit them.
  static StatusOr<PassedSockets> FromEnvironment();

  // Call this before opening any socket: a socket passed under an unknown name would be taken for
  // another daemon's if a configured socket had the same path.
  Status CheckNames(std::initializer_list<std::string_view> known) const;
  // The socket passed under `name`, else one opened as the setting says; none if there is neither.
  StatusOr<std::optional<Listener>> Unix(std::string_view name, const ListenSetting& setting);
  StatusOr<std::optional<Listener>> Tcp(std::string_view name, const ListenSetting& setting);
  // Call this after all have been asked for.
  Status CheckAllTaken() const;

 private:
  // Negative when there is none.
  UniqueFd Take(std::string_view name, bool tcp);

  std::vector<PassedSocket> sockets_;
};

}  // namespace delayd

#include "daemon/passed_sockets.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/errno_text.h"
#include "daemon/config_values.h"
#include "daemon/ip_address.h"
#include "protocol/nearest.h"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

namespace delayd {

namespace {

bool IsOfKind(int fd, bool tcp) {
  const int unix_socket = ::sd_is_socket(fd, AF_UNIX, SOCK_STREAM, -1);
  return tcp ? unix_socket == 0 : unix_socket > 0;
}

Status Refuse(std::string message) {
  return FailedPrecondition(std::move(message), "passed_socket");
}

// The configured and the passed socket must not contradict each other: readers of the file rely on
// it. `wanted` has the form of Listener::name; empty: anything.
StatusOr<std::optional<Listener>> Agreed(StatusOr<Listener> listener,
                                         const ListenSetting& setting,
                                         const std::string& wanted) {
  DELAYD_RETURN_IF_ERROR(listener.status());
  if (!wanted.empty() && listener->name() != wanted) {
    return Refuse("systemd passed the socket " + listener->name() + ", but " +
                  std::string(setting.key) + " is " + protocol::Quoted(setting.value) +
                  "; give both the same address, or turn the socket unit off");
  }
  return std::optional<Listener>(std::move(listener).value());
}

Status NothingUses(const PassedSocket& socket) {
  return Refuse("systemd passed a socket named " + protocol::Quoted(socket.name) +
                " that nothing uses; set FileDescriptorName=api or beanstalk in its unit, with one "
                "ListenStream= a kind");
}

}  // namespace

StatusOr<PassedSockets> PassedSockets::FromEnvironment() {
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return Refuse("cannot take the sockets that were passed: " + ErrnoText(-count) +
                  "; check LISTEN_FDS in the environment");
  }
  std::vector<PassedSocket> sockets;
  for (int i = 0; i < count; ++i) {
    sockets.push_back({names[i], UniqueFd(SD_LISTEN_FDS_START + i)});
    ::free(names[i]);  // NOLINT: allocated by sd-daemon
  }
  ::free(names);  // NOLINT: allocated by sd-daemon
  return PassedSockets(std::move(sockets));
}

UniqueFd PassedSockets::Take(std::string_view name, bool tcp) {
  for (auto socket = sockets_.begin(); socket != sockets_.end(); ++socket) {
    if (socket->name == name && IsOfKind(socket->fd.get(), tcp)) {
      UniqueFd fd = std::move(socket->fd);
      sockets_.erase(socket);
      return fd;
    }
  }
  return UniqueFd();
}

StatusOr<std::optional<Listener>> PassedSockets::Unix(std::string_view name,
                                                      const ListenSetting& setting) {
  if (UniqueFd fd = Take(name, false); fd.valid()) {
    return Agreed(Listener::Adopt(std::move(fd)),
                  setting,
                  setting.value.empty() ? "" : "unix:" + std::string(setting.value));
  }
  if (setting.value.empty()) {
    return std::optional<Listener>();
  }
  return Agreed(Listener::OpenUnix(std::string(setting.value), setting.key), setting, "");
}

StatusOr<std::optional<Listener>> PassedSockets::Tcp(std::string_view name,
                                                     const ListenSetting& setting) {
  if (UniqueFd fd = Take(name, true); fd.valid()) {
    std::string wanted;
    if (!setting.value.empty()) {
      const StatusOr<ListenAddress> address = ParseListenAddress(setting.value);
      DELAYD_RETURN_IF_ERROR(address.status());
      wanted = "http://" + WithPort(address->host, address->port);
    }
    return Agreed(Listener::Adopt(std::move(fd), setting.reach), setting, wanted);
  }
  if (setting.value.empty()) {
    return std::optional<Listener>();
  }
  return Agreed(Listener::OpenTcp(setting.value, setting.reach, setting.key), setting, "");
}

Status PassedSockets::CheckNames(std::initializer_list<std::string_view> known) const {
  const auto unknown = std::ranges::find_if(sockets_, [&known](const PassedSocket& socket) {
    return std::ranges::find(known, socket.name) == known.end();
  });
  return unknown == sockets_.end() ? OkStatus() : NothingUses(*unknown);
}

Status PassedSockets::CheckAllTaken() const {
  return sockets_.empty() ? OkStatus() : NothingUses(sockets_.front());
}

}  // namespace delayd

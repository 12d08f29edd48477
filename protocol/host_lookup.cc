#include "protocol/host_lookup.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "protocol/poll_until.h"

#include <sys/eventfd.h>

namespace delayd::protocol {

// Everything that the lookup thread touches.
struct HostLookup::Question {
  Question(Resolver asked_of, std::string name, std::string service)
      : resolver(std::move(asked_of)), host(std::move(name)), port(std::move(service)) {}

  ~Question() {
    if (found != nullptr) {
      freeaddrinfo(found);
    }
    if (answered_fd >= 0) {
      close(answered_fd);
    }
  }

  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  int Ask(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    return resolver(host.c_str(), port.c_str(), &hints, &found);
  }

  void Answer() {
    error = Ask(0);
    answered = true;
    const uint64_t one = 1;
    const ssize_t written = write(answered_fd, &one, sizeof one);
    static_cast<void>(written);
  }

  Addresses Take() { return {std::exchange(found, nullptr), freeaddrinfo}; }

  const Resolver resolver;
  const std::string host;
  const std::string port;
  const int answered_fd = eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> answered = false;  // guards the two below
  int error = 0;
  addrinfo* found = nullptr;
};

StatusOr<HostLookup::Addresses> HostLookup::Find(const std::string& host,
                                                 const std::string& port,
                                                 BootTime deadline,
                                                 int give_up_fd) {
  if (asked_ == nullptr || asked_->host != host || asked_->port != port) {
    asked_ = std::make_shared<Question>(resolver_, host, port);
    if (asked_->Ask(AI_NUMERICHOST) == 0) {
      return std::exchange(asked_, nullptr)->Take();
    }
    if (asked_->answered_fd < 0) {
      asked_ = nullptr;
      return Unavailable("no file descriptor is free", "unreachable");
    }
    try {
      std::thread([question = asked_] { question->Answer(); }).detach();
    } catch (const std::system_error&) {
      asked_->Answer();  // in this thread: a late answer is better than none
    }
  }
  std::array<pollfd, 2> entries{{{asked_->answered_fd, POLLIN, 0}, {give_up_fd, POLLIN, 0}}};
  PollUntil(entries, deadline);
  if (!asked_->answered) {
    return DeadlineExceeded("timed out", "timed_out");
  }
  const std::shared_ptr<Question> question = std::exchange(asked_, nullptr);
  if (question->error != 0) {
    return Unavailable(gai_strerror(question->error), "unreachable");
  }
  return question->Take();
}

}  // namespace delayd::protocol

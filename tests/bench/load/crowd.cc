#include "tests/bench/load/crowd.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <sys/epoll.h>

namespace delayd::load {

Crowd::Crowd(const Options& options, size_t clients) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (size_t i = 0; i < clients; ++i) {
    clients_.push_back(std::make_unique<Client>(options));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_.back()->connection().fd(), &event);
  }
}

Crowd::~Crowd() {
  ::close(epoll_);
}

void Crowd::Send(size_t i) {
  LoadConnection& connection = clients_[i]->connection();
  while (!connection.Flush()) {
    connection.Fill();  // both sides are full: take what is there
  }
}

void Crowd::Turn(int64_t micros, const Serve& serve) {
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (!clients_[i]->connection().out().empty()) {
      Send(i);
    }
  }
  std::array<epoll_event, 256> events;
  micros = std::max<int64_t>(micros, 0);
  const timespec timeout{.tv_sec = micros / 1'000'000, .tv_nsec = micros % 1'000'000 * 1000};
  const int count =
      ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  for (int at = 0; at < count; ++at) {
    const auto i = static_cast<size_t>(events[static_cast<size_t>(at)].data.u64);
    clients_[i]->connection().Fill();
    while (const Answer* answer = clients_[i]->Next()) {
      serve(i, *answer);
    }
    Send(i);
  }
}

}  // namespace delayd::load

// tests/bench/load/crowd.h — several clients on one epoll.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/bench/load/client.h"
#include "tests/bench/load/options.h"

namespace delayd::load {

class Crowd {
 public:
  Crowd(const Options& options, size_t clients);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  size_t size() const { return clients_.size(); }

  Client& operator[](size_t i) { return *clients_[i]; }

  // Sends what clients have written, waits until something arrives or `micros` have passed, and
  // calls `serve` with each answer. What `serve` writes to that client is sent.
  using Serve = std::function<void(size_t client, const Answer& answer)>;
  void Turn(int64_t micros, const Serve& serve);

 private:
  void Send(size_t i);

  int epoll_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace delayd::load

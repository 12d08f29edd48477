// tests/bench/load/client.h — one connection with its dialect, and the requests that are under way
// on it.
//
// Units:   microseconds of the steady clock.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>

#include "tests/bench/load/dialect.h"
#include "tests/bench/load/load_connection.h"
#include "tests/bench/load/options.h"

namespace delayd::load {

int64_t NowMicros();

class Client {
 public:
  explicit Client(const Options& options);

  LoadConnection& connection() { return connection_; }

  const Dialect& dialect() const { return *dialect_; }

  size_t requests() const { return under_way_.size(); }

  // `due_us`: when the request should be sent; its answer tells.
  void Put(std::span<const NewJob> jobs, int64_t due_us);
  void Lease(size_t count, bool wait);
  void Ack(std::span<const std::string_view> tokens);
  void Cancel(std::span<const uint64_t> ids);

  // The next whole answer; nullptr: there is none. Good until the next call.
  const Answer* Next();

 private:
  struct Request {
    Verb verb = Verb::kPut;
    size_t jobs = 0;
    int64_t due_us = 0;
  };

  LoadConnection connection_;
  std::unique_ptr<Dialect> dialect_;
  std::deque<Request> under_way_;
  Answer answer_;
};

}  // namespace delayd::load

// tests/bench/load/options.h — what the load tool was asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace delayd::load {

struct Options {
  std::string target;
  std::string protocol = "beanstalk";
  size_t connections = 1;
  size_t window = 1;  // jobs in flight on each connection
  double seconds = 2;
  size_t jobs = 50'000;
  size_t pending = 0;  // jobs that are there beforehand and stay
  size_t size = 256;   // of a payload
  size_t queues = 0;   // the jobs go to so many in turn; 0: to the default one, unnamed
  double rate = 1000;  // of an open loop, per second
  int64_t pid = 0;     // the server, whose processor time is read
};

}  // namespace delayd::load

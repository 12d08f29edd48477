// tests/bench/load/load_connection.h — one socket of the load tool and its buffers; knows no
// protocol.
//
// Errors:  a server that goes away, or answers what no server should, ends the tool.
// Threads: one.
// Cost:    one send(2) and one recv(2) each time it is looked at; the tool must not be the
// bottleneck.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace delayd::load {

class LoadConnection {
 public:
  // "unix:/path" or "tcp:127.0.0.1:11300".
  explicit LoadConnection(const std::string& target);
  ~LoadConnection();
  LoadConnection(const LoadConnection&) = delete;
  LoadConnection& operator=(const LoadConnection&) = delete;

  int fd() const { return fd_; }

  std::string& out() { return out_; }

  // False: the socket is full.
  bool Flush();
  // Takes what has arrived; false: nothing.
  bool Fill();

  // What has arrived and was not taken yet. Good until the next Fill.
  std::string_view input() const { return std::string_view(in_).substr(read_); }

  void Take(size_t bytes) { read_ += bytes; }

  // Sends all of out() and waits until more has arrived.
  void Exchange();

 private:
  int fd_ = -1;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;
  size_t read_ = 0;
};

[[noreturn]] void Fail(const std::string& what);

}  // namespace delayd::load

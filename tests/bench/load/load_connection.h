// tests/bench/load/load_connection.h — one connection of the load tool: commands out, replies in.
//
// Errors:  a server that goes away, or answers what no server should, ends the tool.
// Threads: one.
// Cost:    one send(2) and one recv(2) each time it is looked at; the tool must not be the
// bottleneck.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayd::load {

// The line of a reply, and its body if it has one.
struct Answer {
  std::string_view line;  // without CR LF
  std::string_view body;
  // "RESERVED 5 3": 5.
  uint64_t Id() const;
};

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
  // What has arrived; false: nothing.
  bool Fill();
  // The next whole reply; false: there is none. Good until the next call.
  bool Next(Answer* answer);
  // Sends what is in out() and waits for one reply.
  std::string Call();

 private:
  int fd_ = -1;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;
  size_t read_ = 0;
};

[[noreturn]] void Fail(const std::string& what);

}  // namespace delayd::load

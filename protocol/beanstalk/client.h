// protocol/beanstalk/client.h — a blocking connection to a beanstalk server, with pipelining.
//
// Errors:  kInvalidArgument "invalid_server" for a malformed address; kUnavailable when the server
// cannot be reached or has gone; kDeadlineExceeded when it does not answer in time. Whatever the
// server answers is a reply, not an error.
// Threads: one owner.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {
class Connection;
}

namespace delayd::beanstalk {

struct ServerReply {
  std::string line;  // without CR LF
  std::string body;

  // "RESERVED 5 3": the first word, and the number after it, or 0.
  std::string_view word() const;
  uint64_t number() const;
};

// The value of `key` in the YAML of a stats reply, without quotes; empty when there is none.
std::string_view StatsField(std::string_view yaml, std::string_view key);
// The same as a number; 0 when there is none.
uint64_t StatsNumber(std::string_view yaml, std::string_view key);

class Client {
 public:
  // "127.0.0.1:11300", "[::1]:11300" or "unix:/run/beanstalkd.sock".
  static StatusOr<std::unique_ptr<Client>> Connect(std::string_view address, Millis timeout);
  ~Client();

  // Once `fd` is readable, no wait takes longer than a second.
  void HurryWhen(int fd);

  // Queues a command; the next Read sends it.
  void Add(std::string_view command);
  StatusOr<ServerReply> Read();
  StatusOr<ServerReply> Call(std::string_view command);

  const std::string& address() const { return address_; }

 private:
  Client(std::string address, Millis timeout);

  Status Fill(BootTime deadline);

  std::string address_;
  Millis timeout_;
  std::unique_ptr<protocol::Connection> connection_;
  std::string out_;
  std::string in_;
  size_t read_ = 0;
};

}  // namespace delayd::beanstalk

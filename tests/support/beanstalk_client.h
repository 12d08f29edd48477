// tests/support/beanstalk_client.h — a blocking connection to a beanstalk server: bytes out,
// replies in.
//
// Errors:  test failures; a reply that does not come in 30 s is "no reply".
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace delayd::test {

class BeanstalkClient {
 public:
  static BeanstalkClient Tcp(uint16_t port);
  static BeanstalkClient Unix(const std::string& path);
  // None, and no test failure, when no server listens on this Unix socket.
  static std::optional<BeanstalkClient> TryUnix(const std::string& path);
  ~BeanstalkClient();
  BeanstalkClient(BeanstalkClient&& other) noexcept;
  BeanstalkClient& operator=(BeanstalkClient&&) = delete;

  void Send(std::string_view bytes) const;
  // False, and no test failure, when the server is gone.
  bool TrySend(std::string_view bytes) const;
  // One reply: its line and, if it has one, its body, with every CR LF.
  std::string Read();
  std::string Call(std::string_view command);
  // Everything until the server closes.
  std::string ReadToEnd();
  void HalfClose() const;
  void Close();

 private:
  explicit BeanstalkClient(int fd) : fd_(fd) {}

  bool Fill();

  int fd_;
  std::string in_;
};

}  // namespace delayd::test

// tests/support/http_receiver.h — a webhook receiver on a loopback port, for tests.
//
// What:    takes POSTs one connection after the other, keeps what came and answers as it is told.
// An
//          answer is written as it stands on the wire; an empty one closes the connection.
// Threads: a thread of its own calls `answer`; requests() may be called from any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace delayd::test {

struct ReceivedRequest {
  std::string line;                            // "POST /hook HTTP/1.1"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;  // counts from 1
};

class HttpReceiver {
 public:
  using Answer = std::function<std::string(const ReceivedRequest&)>;

  explicit HttpReceiver(Answer answer);
  ~HttpReceiver();
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;

  // "http://127.0.0.1:PORT/hook"
  const std::string& url() const { return url_; }

  std::vector<ReceivedRequest> requests() const;

 private:
  void Serve();
  void ServeConnection(int fd, int number);

  Answer answer_;
  int listen_fd_ = -1;
  int stop_fd_ = -1;
  std::string url_;
  mutable std::mutex mutex_;
  std::vector<ReceivedRequest> requests_;
  std::thread thread_;
};

// "HTTP/1.1 STATUS X" with the headers ("name: value\r\n" each) and the body.
std::string HttpAnswer(int status, const std::string& headers = "", const std::string& body = "");

}  // namespace delayd::test

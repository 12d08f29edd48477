#include "tests/support/http_receiver.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace delayd::test {
namespace {

// A whole request at the front of `bytes`, taken out of it.
std::optional<ReceivedRequest> TakeRequest(std::string* bytes) {
  const size_t head_end = bytes->find("\r\n\r\n");
  if (head_end == std::string::npos) {
    return std::nullopt;
  }
  ReceivedRequest request;
  std::istringstream head(bytes->substr(0, head_end));
  std::getline(head, request.line);
  request.line.erase(request.line.find_last_not_of('\r') + 1);
  for (std::string line; std::getline(head, line);) {
    line.erase(line.find_last_not_of('\r') + 1);
    const size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    request.headers[name] = line.substr(std::min(line.size(), colon + 2));
  }
  const size_t size = std::strtoull(request.headers["content-length"].c_str(), nullptr, 10);
  if (bytes->size() < head_end + 4 + size) {
    return std::nullopt;
  }
  request.body = bytes->substr(head_end + 4, size);
  bytes->erase(0, head_end + 4 + size);
  return request;
}

}  // namespace

HttpReceiver::HttpReceiver(Answer answer) : answer_(std::move(answer)) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  DELAYD_CHECK(bind(listen_fd_, generic, size) == 0);
  DELAYD_CHECK(listen(listen_fd_, 16) == 0);
  DELAYD_CHECK(getsockname(listen_fd_, generic, &size) == 0);
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/hook";
  thread_ = std::thread([this] { Serve(); });
}

HttpReceiver::~HttpReceiver() {
  const uint64_t one = 1;
  DELAYD_CHECK(write(stop_fd_, &one, sizeof one) == sizeof one);
  thread_.join();
  close(listen_fd_);
  close(stop_fd_);
}

std::vector<ReceivedRequest> HttpReceiver::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpReceiver::Serve() {
  for (int number = 1;; ++number) {
    std::array<pollfd, 2> entries{{{listen_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    TEMP_FAILURE_RETRY(poll(entries.data(), entries.size(), -1));
    if (entries[1].revents != 0) {
      return;
    }
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      ServeConnection(fd, number);
      close(fd);
    }
  }
}

void HttpReceiver::ServeConnection(int fd, int number) {
  std::string bytes;
  for (;;) {
    while (std::optional<ReceivedRequest> request = TakeRequest(&bytes)) {
      request->connection = number;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      const std::string answer = answer_(*request);
      if (answer.empty() || send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) !=
                                static_cast<ssize_t>(answer.size())) {
        return;
      }
    }
    std::array<pollfd, 2> entries{{{fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    poll(entries.data(), entries.size(), -1);
    std::array<char, 4096> buffer{};
    const ssize_t count = entries[1].revents != 0 ? 0 : recv(fd, buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      return;
    }
    bytes.append(buffer.data(), static_cast<size_t>(count));
  }
}

std::string HttpAnswer(int status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace delayd::test

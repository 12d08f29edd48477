// protocol/connection.h — one stream socket to a daemon, with a deadline on everything.
//
// Private to the client.
// Errors:  kUnavailable "unreachable" and kPermissionDenied with cause and cure from Open;
// kDeadlineExceeded "timed_out"; kUnavailable "connection_lost" when the peer is gone.
// Threads: one owner. Interrupted system calls go on.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "protocol/server_address.h"

namespace delayd::protocol {

class Connection {
 public:
  Connection() = default;

  ~Connection() { Close(); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(const ServerAddress& address, BootTime deadline);
  void Close();

  bool open() const { return fd_ >= 0; }

  // No byte and no end has come since the last answer: good for another request.
  bool Idle() const;

  // Sends all; `sent` counts what the kernel took, also when it fails.
  Status Send(std::string_view bytes, BootTime deadline, size_t* sent);
  // At least one byte, or zero at the end of the stream.
  StatusOr<size_t> Receive(char* buffer, size_t size, BootTime deadline);

 private:
  Status Wait(short events, BootTime deadline) const;
  // 0, or the errno.
  int Connect(int fd, const void* address, size_t size, BootTime deadline);
  Status OpenUnix(const ServerAddress& address, BootTime deadline);
  Status OpenTcp(const ServerAddress& address, BootTime deadline);

  int fd_ = -1;
};

}  // namespace delayd::protocol

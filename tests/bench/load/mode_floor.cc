#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/load/client.h"
#include "tests/bench/load/latencies.h"
#include "tests/bench/load/modes.h"

#include <sys/socket.h>
#include <sys/wait.h>

namespace delayd::load {
namespace {

constexpr size_t kBlock = 4096;

// Writes blocks one after the other, each made durable, from the file's beginning.
Latencies TimeSyncs(int fd, int count) {
  Latencies latencies;
  const std::string block(kBlock, 'x');
  for (int i = 0; i < count; ++i) {
    const int64_t begin = NowMicros();
    if (::pwrite(fd, block.data(), kBlock, static_cast<off_t>(kBlock) * i) !=
            static_cast<ssize_t>(kBlock) ||
        ::fdatasync(fd) != 0) {
      Fail("cannot write the probe's file");
    }
    latencies.Add(NowMicros() - begin);
  }
  return latencies;
}

Latencies TimeEchoes(int count) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    Fail("no socket pair");
  }
  std::array<char, 300> bytes{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    for (;;) {
      const ssize_t got = ::recv(ends[1], bytes.data(), bytes.size(), 0);
      if (got <= 0 || ::send(ends[1], bytes.data(), static_cast<size_t>(got), 0) != got) {
        ::_exit(0);
      }
    }
  }
  ::close(ends[1]);
  Latencies latencies;
  for (int i = 0; i < count; ++i) {
    const int64_t begin = NowMicros();
    if (::send(ends[0], bytes.data(), bytes.size(), 0) < 0 ||
        ::recv(ends[0], bytes.data(), bytes.size(), MSG_WAITALL) < 0) {
      Fail("the echo has gone");
    }
    latencies.Add(NowMicros() - begin);
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return latencies;
}

}  // namespace

void MeasureFloor(const Options& options) {
  constexpr int kSyncs = 500;
  constexpr int kEchoes = 5000;
  const std::string path = options.target + "/floor-probe";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    Fail("cannot write in " + options.target);
  }
  Latencies append = TimeSyncs(fd, kSyncs);
  Latencies overwrite = TimeSyncs(fd, kSyncs);
  ::close(fd);
  ::unlink(path.c_str());
  Latencies echo = TimeEchoes(kEchoes);
  std::printf("{\"syncs\":%d%s%s%s}\n",
              kSyncs,
              append.Members("append").c_str(),
              overwrite.Members("overwrite").c_str(),
              echo.Members("echo").c_str());
}

}  // namespace delayd::load

// tests/unit/cli/stuck_errors.h — while it lives, our stderr is a pipe that is full and that nobody
// reads: a terminal that was stopped, a pager.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace delayd::cli {

class StuckErrors {
 public:
  StuckErrors() : old_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string block(4096, '.');
    while (write(ends_[1], block.data(), block.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
  }

  ~StuckErrors() {
    dup2(old_, STDERR_FILENO);
    for (const int fd : {old_, ends_[0], ends_[1]}) {
      close(fd);
    }
  }

  StuckErrors(const StuckErrors&) = delete;
  StuckErrors& operator=(const StuckErrors&) = delete;

  // As far as writers see it: there is room again.
  void ReadAll() const {
    std::array<char, 1 << 16> buffer{};
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    while (read(ends_[0], buffer.data(), buffer.size()) > 0) {
    }
  }

 private:
  int old_;
  std::array<int, 2> ends_{};
};

}  // namespace delayd::cli

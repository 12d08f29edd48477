#include "tests/support/beanstalkd.h"

#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace delayd::test {
namespace {

constexpr const char* kPath = "/usr/bin/beanstalkd";

}  // namespace

bool Beanstalkd::IsInstalled() {
  return ::access(kPath, X_OK) == 0;
}

Beanstalkd::Beanstalkd(std::string job_bytes_max) : job_bytes_max_(std::move(job_bytes_max)) {
  Start();
}

Beanstalkd::~Beanstalkd() {
  process_->Signal(SIGTERM);
  process_->Wait();
}

void Beanstalkd::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

void Beanstalkd::Start() {
  ::unlink(socket().c_str());
  process_ = std::make_unique<Process>(ProcessOptions{
      .argv = {kPath, "-l", "unix:" + socket(), "-f0", "-b", dir_.Sub(""), "-z", job_bytes_max_}});
  // The path is there before the socket listens: only a connection tells.
  while (!BeanstalkClient::TryUnix(socket()).has_value()) {
    if (process_->HasEnded()) {
      ADD_FAILURE() << "beanstalkd ended at start: " << process_->err();
      return;
    }
    std::this_thread::yield();
  }
}

}  // namespace delayd::test

// tests/support/beanstalkd.h — Debian's beanstalkd on a Unix socket of its own: the peer that tests
// compare with and import from.
//
// Errors:  a failed check when it does not listen.
// Threads: one.
#pragma once

#include <memory>
#include <string>

#include "tests/support/beanstalk_client.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace delayd::test {

class Beanstalkd {
 public:
  static constexpr const char* kWhyNot =
      "beanstalkd is not installed (scripts/install-packages test)";
  static bool IsInstalled();

  // Started, with a log that is synced at each write; it accepts connections from here on.
  explicit Beanstalkd(std::string job_bytes_max = "65535");
  ~Beanstalkd();  // stops it

  std::string socket() const { return dir_.Sub("s.sock"); }

  BeanstalkClient Connect() const { return BeanstalkClient::Unix(socket()); }

  void Kill();
  // After a kill: comes back with the jobs of its log.
  void Start();

 private:
  TempDir dir_;
  std::string job_bytes_max_;
  std::unique_ptr<Process> process_;
};

}  // namespace delayd::test

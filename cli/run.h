// cli/run.h — delayctl without its process: arguments in, exit code out.
//
// Errors:  printed as one line on stderr; the exit code says which kind.
// Threads: one owner.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/local_time.h"
#include "protocol/client.h"

namespace delayd::cli {

struct Environment {
  using Connect = std::function<StatusOr<std::unique_ptr<protocol::Client>>(
      const std::string& address, const std::string& ca_file)>;

  Console& console;
  const Clock& clock;
  std::istream& in;
  bool in_is_terminal = false;
  int in_fd = -1;            // of `in`, for a verb that also waits for something else; -1: none
  std::string server;        // DELAYCTL_SERVER; empty: unset
  std::string token_file{};  // DELAYCTL_TOKEN_FILE; empty: unset
  std::string ca_file{};     // DELAYCTL_CA_FILE; empty: unset
  // Waits between two looks of a verb that watches.
  std::function<void(Millis)> sleep = [](Millis time) { std::this_thread::sleep_for(time); };
  cctz::time_zone zone = cctz::utc_time_zone();
  std::string unknown_zone = {};  // the value of TZ when it names no known zone
  Connect connect = [](const std::string& address, const std::string& authorities) {
    return protocol::Client::Create(address, authorities);
  };
};

int RunDelayctl(const std::vector<std::string>& args, const Environment& environment);

}  // namespace delayd::cli

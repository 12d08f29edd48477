// cli/context.h — what every verb is given: the global options and its access to the outside world.
//
// Threads: one owner; work's threads use only clock, console.Say, console.Warn and console.Line.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/api.h"
#include "cli/console.h"
#include "cli/daemon_clock.h"
#include "cli/local_time.h"
#include "protocol/client.h"

namespace delayd::cli {

enum class OutputFormat : uint8_t { kTable, kJson, kJsonl };

struct Globals {
  std::optional<std::string> server;
  std::optional<std::string> token_file;
  std::optional<std::string> ca_file;
  OutputFormat output = OutputFormat::kTable;
  bool wide = false;  // a table with more columns
  bool quiet = false;
  bool utc = false;
  std::optional<Millis> timeout;
};

inline constexpr Millis kTimeoutDefault{5000};

// A setting, and where it comes from: an option, an environment variable, or "default".
struct Setting {
  std::string value;
  std::string_view origin;
};

// How the daemon is reached.
struct Target {
  Setting server;
  Setting token_file;  // empty: no token is sent
  Setting ca_file;     // empty: the system's store
};

struct Context {
  using Connect = std::function<StatusOr<std::unique_ptr<protocol::Client>>()>;

  Globals globals;
  Console& console;
  const Clock& clock;
  std::istream& in;
  bool in_is_terminal = false;
  int in_fd = -1;  // of `in`, for a verb that also waits for something else; -1: none
  Connect connect;
  std::function<void(Millis)> sleep;
  cctz::time_zone zone = cctz::utc_time_zone();
  Target target = {};  // what `connect` connects to
  std::shared_ptr<DaemonClock> daemon_clock = std::make_shared<DaemonClock>(clock);

  // Whether a table shortens long names.
  bool CutsNames() const { return console.traits().out_is_terminal && !globals.wide; }

  // A moment as people read it.
  std::string TimeText(WallTime time) const { return FormatLocalTime(time, zone); }

  // The daemon's time, by which jobs are due, as far as its answers have told it.
  WallTime DaemonNow() const { return daemon_clock->Now(); }

  StatusOr<std::unique_ptr<Api>> OpenApi(Millis timeout_default = kTimeoutDefault) const {
    DELAYD_ASSIGN_OR_RETURN(std::unique_ptr<protocol::Client> client, connect());
    return std::make_unique<Api>(
        std::move(client), globals.timeout.value_or(timeout_default), daemon_clock);
  }

  // Waits between two looks of a verb that watches; not OK when nobody reads the output any more.
  Status Rest(Millis time) const {
    if (console.traits().out_fd >= 0) {
      return console.Rest(time);
    }
    sleep(time);
    return OkStatus();
  }
};

}  // namespace delayd::cli

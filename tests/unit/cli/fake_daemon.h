// tests/unit/cli/fake_daemon.h — a delayctl whose daemon is a function, and whose terminal is a
// string.
//
// Threads: the daemon function is called under a lock; work's threads may call at once.
#pragma once

#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/job.h"
#include "cli/run.h"
#include "protocol/client.h"
#include "protocol/problem.h"

namespace delayd::cli {

struct Request {
  std::string method;
  std::string target;
  std::string content_type;
  std::string body;
  Millis timeout{0};
  int give_up_fd = -1;
  std::string token;
};

using Answer = StatusOr<protocol::HttpResponse>;

Answer Ok(std::string body, int status = 200);

Answer Problem(const Status& status);

class FakeDaemon {
 public:
  using Function = std::function<Answer(const Request&)>;

  explicit FakeDaemon(Function answer);

  std::unique_ptr<protocol::Client> Connect();

  std::vector<Request> requests();

 private:
  class FakeClient;

  std::mutex mutex_;
  Function answer_;
  std::vector<Request> requests_;
};

// One run of delayctl.
struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
  std::vector<Request> requests;
  std::string server;
};

inline constexpr int64_t kTestNow = 1'798'794'000'000;  // 2027-01-01T09:00:00Z

inline constexpr Console::Traits kTerminal = {.out_is_terminal = true, .err_is_terminal = true};

struct CtlOptions {
  FakeDaemon::Function daemon = [](const Request&) { return Problem(NotFound("no such thing")); };
  std::string input = {};
  bool in_is_terminal = false;
  int in_fd = -1;  // read in place of `input`
  Console::Traits traits = {};
  std::string environment_server = {};
  std::string environment_token_file = {};
  cctz::time_zone zone = cctz::utc_time_zone();
  std::string unknown_zone = {};
  Millis call_takes{0};            // not with work, whose threads call at once
  Millis daemon_ahead{0};          // of this clock; its answers are dated so
  bool ignores_interrupt = false;  // SIGINT, as started by a shell without job control
};

// A verb that watches is never done by itself: its daemon refuses it, for good.
FakeDaemon::Function RefusedAfter(int calls, FakeDaemon::Function answer);

// An answer to all that is no job: nothing moves, and nothing is paused.
FakeDaemon::Function WhereNothingMoves(FakeDaemon::Function jobs);

Outcome Ctl(const std::vector<std::string>& args, CtlOptions options = {});

// A job as the daemon would answer it.
JobView SomeJob(uint64_t id = 42);
// Answers each line of an import with such a job, the first with id 100.
Answer Accept(const Request& request);

}  // namespace delayd::cli

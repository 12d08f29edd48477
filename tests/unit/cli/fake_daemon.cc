#include "tests/unit/cli/fake_daemon.h"

#include <signal.h>

#include <memory>
#include <sstream>
#include <utility>

#include "protocol/job_json.h"
#include "protocol/problem.h"
#include "protocol/stats_json.h"

namespace delayd::cli {

Answer Ok(std::string body, int status) {
  return protocol::HttpResponse{.status = status, .body = std::move(body), .commit_sequence = 1};
}

Answer Problem(const Status& status) {
  return Ok(protocol::ProblemToJson(status), protocol::HttpStatusOf(status));
}

class FakeDaemon::FakeClient final : public protocol::Client {
 public:
  explicit FakeClient(FakeDaemon* daemon) : daemon_(*daemon) {}

  void UseToken(std::string token) override { token_ = std::move(token); }

  void UseHeader(std::string_view, std::string_view) override {}

  void GiveUpWhen(int fd, Millis) override { give_up_fd_ = fd; }

  Answer Call(std::string_view method,
              std::string_view target,
              std::string_view content_type,
              std::string_view body,
              Millis timeout) override {
    const std::lock_guard lock(daemon_.mutex_);
    daemon_.requests_.push_back({std::string(method),
                                 std::string(target),
                                 std::string(content_type),
                                 std::string(body),
                                 timeout,
                                 give_up_fd_,
                                 token_});
    return daemon_.answer_(daemon_.requests_.back());
  }

 private:
  FakeDaemon& daemon_;
  int give_up_fd_ = -1;
  std::string token_;
};

FakeDaemon::FakeDaemon(Function answer) : answer_(std::move(answer)) {}

std::unique_ptr<protocol::Client> FakeDaemon::Connect() {
  return std::make_unique<FakeClient>(this);
}

std::vector<Request> FakeDaemon::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

FakeDaemon::Function RefusedAfter(int calls, FakeDaemon::Function answer) {
  return [calls, answer = std::move(answer)](const Request& request) mutable {
    return calls-- > 0 ? answer(request) : Problem(PermissionDenied("the token was taken back"));
  };
}

FakeDaemon::Function WhereNothingMoves(FakeDaemon::Function jobs) {
  return [jobs = std::move(jobs)](const Request& request) {
    if (request.target == "/v1/stats") {
      return Ok(R"({"scheduled":3,"nacked":7,"now":"2027-01-01T09:00:00.000Z"})");
    }
    return request.target.starts_with("/v1/queues") ? Ok(protocol::QueuesToJson({}))
                                                    : jobs(request);
  };
}

Outcome Ctl(const std::vector<std::string>& args, CtlOptions options) {
  signal(SIGINT, options.ignores_interrupt ? SIG_IGN : SIG_DFL);
  Outcome outcome;
  std::ostringstream out;
  std::ostringstream err;
  std::istringstream in(options.input);
  Console console(out, err, options.traits);
  SimulatedClock clock({.wall = WallFromMillis(kTestNow), .boot = BootFromMillis(1000)});
  FakeDaemon daemon([&](const Request& request) {
    if (options.call_takes > Millis(0)) {
      clock.Advance(options.call_takes);
    }
    Answer answer = options.daemon(request);
    if (answer.ok() && !answer->date) {
      answer->date = clock.Sample().wall + options.daemon_ahead;
    }
    return answer;
  });
  outcome.code =
      RunDelayctl(args,
                  {.console = console,
                   .clock = clock,
                   .in = in,
                   .in_is_terminal = options.in_is_terminal,
                   .in_fd = options.in_fd,
                   .server = options.environment_server,
                   .token_file = options.environment_token_file,
                   .sleep = [&clock](Millis time) { clock.Advance(time); },
                   .zone = options.zone,
                   .unknown_zone = options.unknown_zone,
                   .connect = [&](const std::string& server, const std::string& /*ca_file*/)
                       -> StatusOr<std::unique_ptr<protocol::Client>> {
                     outcome.server = server;
                     return daemon.Connect();
                   }});
  outcome.out = out.str();
  outcome.err = err.str();
  outcome.requests = daemon.requests();
  return outcome;
}

JobView SomeJob(uint64_t id) {
  JobView job;
  job.id = JobId{id};
  job.queue = "orders";
  job.key = "order:1001";
  job.due = WallFromMillis(kTestNow + 30 * 60 * 1000);
  job.created = WallFromMillis(kTestNow);
  job.priority = 1024;
  job.lease = Millis(60'000);
  job.max_attempts = 25;
  job.payload = "{\"order_id\":1001}";
  job.payload_bytes = job.payload->size();
  return job;
}

Answer Accept(const Request& request) {
  std::string body;
  uint64_t id = 100;
  for (const char c : request.body) {
    if (c == '\n') {
      body += protocol::EnqueuedToJson({SomeJob(id++), false}) + "\n";
    }
  }
  return Ok(body, 201);
}

}  // namespace delayd::cli

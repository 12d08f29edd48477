// A worker's lease as time goes on: how long it lasts, and what it means that it is over.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/worker.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/stuck_errors.h"
#include "tests/unit/cli/worker_scene.h"

namespace delayd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// How a job is handled, on the test's clock.
struct Handling {
  Millis takes{500};
  std::string action = "ack";
  bool unwatched = false;  // its worker is stopped meanwhile
};

class TimedRun final : public JobRun {
 public:
  TimedRun(SimulatedClock* clock, Handling handling, std::vector<Millis>* graces)
      : clock_(*clock),
        done_at_(clock->Sample().boot + handling.takes),
        handling_(std::move(handling)),
        graces_(*graces) {}

  Event Wait(BootTime until, int wake_fd) override {
    pollfd woken{.fd = wake_fd, .events = POLLIN, .revents = 0};
    if (poll(&woken, 1, 0) == 1) {
      return Event::kWoken;
    }
    const bool done = handling_.unwatched || done_at_ <= until;
    const Millis time = (done ? done_at_ : until) - clock_.Sample().boot;
    clock_.Advance(std::max(time, Millis(0)));
    return done ? Event::kDone : Event::kDeadline;
  }

  void End(Millis grace) override { graces_.push_back(grace); }

  Verdict verdict() const override { return {handling_.action, ""}; }

 private:
  SimulatedClock& clock_;
  const BootTime done_at_;
  const Handling handling_;
  std::vector<Millis>& graces_;
};

// A queue of jobs behind the API, on a clock that only handlers and late answers move.
class WorkerLeaseTest : public WorkerScene {
 protected:
  WorkerLeaseTest()
      : WorkerScene(clock_, [this](const Request& request) { return Serve(request); }) {}

  class Handler final : public JobHandler {
   public:
    explicit Handler(WorkerLeaseTest* test) : test_(*test) {}

    StatusOr<std::unique_ptr<JobRun>> Start(const JobView& /*job*/) override {
      ++test_.begun_;
      return std::unique_ptr<JobRun>(
          std::make_unique<TimedRun>(&test_.clock_, test_.handling_, &test_.graces_));
    }

   private:
    WorkerLeaseTest& test_;
  };

  Answer Serve(const Request& request) {
    const std::string call = request.target.substr(request.target.rfind('/') + 1);
    if (const auto stranger = strangers_.find(call); stranger != strangers_.end()) {
      calls_.push_back(call);
      return Ok(stranger_, strangers_.extract(stranger).mapped());
    }
    if (call == "lease") {
      protocol::JobPage page;
      if (jobs_ > 0) {
        page.jobs.push_back(HandOut());
      } else if (worker_ != nullptr) {
        worker_->Stop();
      }
      return Ok(protocol::JobPageToJson(page));
    }
    calls_.push_back(call);
    if (on_call_) {
      on_call_();
    }
    const bool extends = call == "extend";
    if (extends && answers_late_) {
      return Unknown("no answer within 50ms", "timed_out");
    }
    if (extends && clock_.Sample().boot < back_at_) {
      return Problem(Unavailable("the daemon is starting"));
    }
    if (is_restarted_ || clock_.Sample().boot >= lease_end_) {
      return Problem(FailedPrecondition("the lease of job 1 is over", "lease_lost"));
    }
    lease_end_ = extends ? clock_.Sample().boot + lease_ : lease_end_;
    return Ok(protocol::JobToJson(SomeJob()));
  }

  JobView HandOut() {
    --jobs_;
    JobView job = SomeJob(1);
    job.state = JobState::kLeased;
    job.attempt = 1;
    job.lease = lease_;
    job.lease_token = LeaseToken{job.id, 1, 1};
    clock_.Advance(waits_);
    job.lease_expires = clock_.Sample().wall + lease_ + daemon_ahead_;
    lease_end_ = clock_.Sample().boot + lease_;
    clock_.Advance(std::exchange(unread_, Millis(0)));
    return job;
  }

  // Of so many jobs, or until there is none; how many of them the daemon could not be told.
  uint64_t Work(std::optional<uint64_t> count) {
    Worker worker(&context_,
                  {.queue = "orders",
                   .make_handler = [this] { return std::make_unique<Handler>(this); },
                   .count = count,
                   .handler_timeout = handler_timeout_,
                   .grace = Millis(10'000)});
    worker_ = count.has_value() ? nullptr : &worker;
    EXPECT_TRUE(worker.Run().ok());
    return worker.undelivered();
  }

  uint64_t jobs_ = 1;
  Millis lease_{2000};
  Handling handling_;
  Millis waits_{0};         // before it hands out
  Millis unread_{0};        // that answer lies so long, once
  Millis daemon_ahead_{0};  // its clock
  std::optional<Millis> handler_timeout_;
  bool answers_late_ = false;  // of extensions: the worker does not wait so long
  std::function<void()> on_call_;
  std::vector<Millis> graces_;  // what handlers got to end in
  bool is_restarted_ = false;   // the daemon, after the hand-out
  BootTime back_at_;            // until then it extends no lease
  BootTime lease_end_;
  std::vector<std::string> calls_;
  std::map<std::string, int> strangers_;  // the first such call is answered by another server
  std::string stranger_ = "<html>";
  Worker* worker_ = nullptr;  // stopped when there is no job
  int begun_ = 0;
  SimulatedClock clock_{{.wall = WallFromMillis(kTestNow), .boot = BootFromMillis(1000)}};
};

TEST_F(WorkerLeaseTest, AJobThatWasDoneInTimeAndIsHandedOutAgainIsRemembered) {
  is_restarted_ = true;
  EXPECT_EQ(Work(1), 1U);
  EXPECT_THAT(err_.str(), HasSubstr("refused ack (the lease of job 1 is over"));
  jobs_ = 1;
  handling_.action = "nack";  // which asks for that
  EXPECT_EQ(Work(1), 0U);
}

TEST_F(WorkerLeaseTest, WhoWorksUntilItIsStoppedEndsWellAfterARefusalOfLongAgo) {
  is_restarted_ = true;
  EXPECT_EQ(Work(std::nullopt), 0U);
  EXPECT_THAT(err_.str(), HasSubstr("refused ack (the lease of job 1 is over"));
}

TEST_F(WorkerLeaseTest, AJobThatWasDoneWhenItsLeaseWasOverIsAnothersToTell) {
  handling_ = {.takes = Millis(5000), .unwatched = true};
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("ack"));
  EXPECT_THAT(err_.str(), HasSubstr("refused ack (the lease of job 1 is over"));
}

TEST_F(WorkerLeaseTest, AJobWhoseLeaseWasOverWhenItsAnswerWasReadIsLeftAndNotCounted) {
  jobs_ = 2;
  unread_ = Millis(5000);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "ack"));
  EXPECT_EQ(begun_, 1);
  EXPECT_THAT(err_.str(),
              HasSubstr("lease lost, handler not started (the lease of job 1 is over) after 0ms"));
}

TEST_F(WorkerLeaseTest, ALeaseThatMayBeOverIsExtendedBeforeTheHandlerBegins) {
  unread_ = Millis(1500);
  handling_.takes = Millis(900);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "ack"));
}

TEST_F(WorkerLeaseTest, AShortLeaseNeedsNoExtensionHoweverLongTheJobWasWaitedFor) {
  waits_ = Millis(2000);
  unread_ = Millis(3);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("ack"));
}

TEST_F(WorkerLeaseTest, AClockThatDiffersCostsAtMostOneExtension) {
  waits_ = Millis(2000);
  for (const Millis ahead : {Millis(-60'000), Millis(60'000)}) {
    calls_.clear();
    jobs_ = 1;
    daemon_ahead_ = ahead;
    EXPECT_EQ(Work(1), 0U);
    EXPECT_THAT(calls_, ElementsAre("extend", "ack"));
  }
}

TEST_F(WorkerLeaseTest, AShortLeaseIsExtendedInTime) {
  lease_ = Millis(80);
  handling_.takes = Millis(100);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "extend", "ack"));
}

// A proxy that is loaded anew, say.
TEST_F(WorkerLeaseTest, WhatAnotherServerAnswersIsNoWordOnLeases) {
  strangers_ = {{"lease", 404}, {"extend", 302}, {"ack", 200}};
  handling_.takes = Millis(1900);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("lease", "extend", "extend", "ack", "ack"));
  EXPECT_THAT(err_.str(),
              HasSubstr("HTTP 404, and not from delayd: a proxy, or another server on this "
                        "address: '<html>'; waiting for delayd\n"));
}

TEST_F(WorkerLeaseTest, AHandOutThatIsNotUnderstoodEndsTheWorkerBeforeAttemptsAreUsedUp) {
  strangers_ = {{"lease", 200}};
  stranger_ = R"({"items":[]})";
  Worker worker(&context_,
                {.queue = "orders",
                 .make_handler = [this] { return std::make_unique<Handler>(this); },
                 .count = 1});
  EXPECT_EQ(worker.Run().reason(), "invalid_response");
  EXPECT_THAT(calls_, ElementsAre("lease"));
}

// Of the job in hand it would be repeated for ever.
TEST_F(WorkerLeaseTest, AnAckWhoseAnswerIsNotUnderstoodIsUnknownAndNotRepeated) {
  strangers_ = {{"ack", 200}};
  stranger_ = R"({"acked":true})";
  EXPECT_EQ(Work(1), 1U);
  EXPECT_THAT(calls_, ElementsAre("ack"));
  EXPECT_THAT(err_.str(), HasSubstr("unknown, the answer to ack was lost ("));
}

TEST_F(WorkerLeaseTest, AShortLeaseOutlivesAnOutageAroundItsFirstExtension) {
  lease_ = Millis(4000);
  handling_.takes = Millis(5000);
  back_at_ = clock_.Sample().boot + Millis(2600);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "extend", "extend", "extend", "extend", "ack"));
}

// The daemon would take the last one as the handler is stopped, and keep the job from everybody.
TEST_F(WorkerLeaseTest, NoLeaseIsExtendedWhoseHandlerIsBeingStopped) {
  lease_ = Millis(4000);
  handling_.takes = Millis(5000);
  back_at_ = clock_.Sample().boot + Millis(3000);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "extend", "extend", "extend"));
  EXPECT_THAT(
      err_.str(),
      HasSubstr("lease ran out, handler stopped (the daemon is starting) after 3s, handed out"));
}

TEST_F(WorkerLeaseTest, AHandlerHasNoMoreTimeToEndThanItsLease) {
  handling_.takes = Millis(5000);
  handler_timeout_ = Millis(20);
  back_at_ = clock_.Sample().boot + Millis(3000);
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "nack"));
  EXPECT_THAT(graces_, ElementsAre(Millis(1980)));
}

TEST_F(WorkerLeaseTest, AnAnswerThatTheHandlersEndCutsShortIsNoOutage) {
  handling_.takes = Millis(5000);
  handler_timeout_ = Millis(1050);
  answers_late_ = true;
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_, ElementsAre("extend", "extend", "nack"));
  EXPECT_THAT(err_.str(), HasSubstr("nack (handler timed out after 1s50ms)"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("waiting for delayd")));
}

TEST_F(WorkerLeaseTest, ALogThatTakesNothingHoldsNeitherALeaseNorTheSecondStop) {
  handling_.takes = Millis(5000);
  back_at_ = clock_.Sample().boot + Millis(5000);
  const StuckErrors stuck;
  Console console(out_, std::cerr, {});
  Context context{.globals = {},
                  .console = console,
                  .clock = clock_,
                  .in = in_,
                  .in_is_terminal = false,
                  .connect = context_.connect};
  Worker worker(&context,
                {.queue = "orders",
                 .make_handler = [this] { return std::make_unique<Handler>(this); },
                 .count = 1});
  on_call_ = [&] {
    if (calls_.size() == 2) {
      worker.Stop();
      worker.Stop();
    }
  };
  std::promise<void> done;
  // Else it would be a test that hangs.
  std::thread late([&] {
    EXPECT_EQ(done.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    stuck.ReadAll();
  });
  EXPECT_TRUE(worker.Run().ok());
  done.set_value();
  late.join();
  EXPECT_THAT(calls_, ElementsAre("extend", "extend", "extend", "nack"));
}

// As if the answer had just come.
TEST_F(WorkerLeaseTest, AClockThatDiffersDoesNotHideThatAnAnswerLayUnread) {
  unread_ = daemon_ahead_ = Millis(5000);
  jobs_ = 2;
  EXPECT_EQ(Work(1), 0U);
  EXPECT_THAT(calls_.front(), "extend");
  EXPECT_EQ(begun_, 1);
}

}  // namespace
}  // namespace delayd::cli

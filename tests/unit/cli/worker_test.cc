#include "cli/worker.h"

#include <unistd.h>

#include <atomic>
#include <deque>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exec_handler.h"
#include "tests/support/files.h"
#include "tests/support/no_threads.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/worker_scene.h"

namespace delayd::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A queue of jobs behind the API, and what was done with their leases.
class WorkerTest : public WorkerScene {
 protected:
  WorkerTest() : WorkerScene(clock_, [this](const Request& request) { return Serve(request); }) {}

  void AddJob(uint64_t id) {
    JobView job = SomeJob(id);
    job.state = JobState::kLeased;
    job.attempt = 1;
    job.lease_token = LeaseToken{job.id, 1, id};
    job.lateness = Millis(3);
    jobs_.push_back(std::move(job));
  }

  // Called under the lock of the fake daemon.
  Answer Serve(const Request& request) {
    if (outages_ > 0) {
      --outages_;
      return Unavailable("nobody there", "unreachable");
    }
    if (request.target == "/v1/queues/orders/lease") {
      protocol::JobPage page;
      if (empty_looks_ > 0) {
        --empty_looks_;
      } else if (!jobs_.empty()) {
        page.jobs.push_back(jobs_.front());
        jobs_.pop_front();
      }
      return Ok(protocol::JobPageToJson(page));
    }
    if (request.target == "/v1/queues/orders") {
      if (lost_counts_ > 0) {
        --lost_counts_;
        return Unavailable("nobody there", "unreachable");
      }
      return Ok(protocol::QueueToJson({.name = "orders",
                                       .ready = jobs_.size() + damaged_,
                                       .damaged = damaged_,
                                       .paused = paused_}));
    }
    const std::string call = request.target.substr(std::string_view("/v1/leases/").size());
    if (!begun_) {
      // A machine that is busy between the hand-out and the handler's begin may use up a part of a
      // short lease, which is extended then. It is not what the tests are about.
      return Ok(protocol::JobToJson(SomeJob()));
    }
    calls_.push_back(call + " " + request.body);
    if (on_call_) {
      return on_call_(call);
    }
    return Ok(protocol::JobToJson(SomeJob()));
  }

  // Notes when the first handler begins.
  class NotedHandler final : public JobHandler {
   public:
    NotedHandler(std::unique_ptr<JobHandler> handler, std::atomic<bool>* begun)
        : handler_(std::move(handler)), begun_(begun) {}

    StatusOr<std::unique_ptr<JobRun>> Start(const JobView& job) override {
      *begun_ = true;
      return handler_->Start(job);
    }

   private:
    const std::unique_ptr<JobHandler> handler_;
    std::atomic<bool>* const begun_;
  };

  Status RunWorker(WorkOptions options) {
    begun_ = false;
    options.make_handler = [this, make = std::move(options.make_handler)] {
      return std::make_unique<NotedHandler>(make(), &begun_);
    };
    options.queue = "orders";
    options.poll = Millis(0);
    options.grace = grace_;
    Worker worker(&context_, std::move(options));
    worker_ = &worker;
    const Status status = worker.Run();
    worker_ = nullptr;
    undelivered_ = worker.undelivered();
    left_damaged_ = worker.left_damaged();
    return status;
  }

  static WorkOptions Drain(std::vector<std::string> command) {
    WorkOptions options;
    options.make_handler = ExecHandler(std::move(command));
    options.drain = true;
    return options;
  }

  // A file by whose end the test tells something to a handler, or a handler to the test.
  std::string SetFlag() const {
    test::WriteFile(dir_.Sub("flag"), "");
    return dir_.Sub("flag");
  }

  const test::TempDir dir_;
  std::deque<JobView> jobs_;
  int outages_ = 0;
  int empty_looks_ = 0;  // so many get no job
  int lost_counts_ = 0;  // so many requests for the queue's counts find nobody
  uint64_t damaged_ = 0;
  bool paused_ = false;
  Millis grace_{10'000};
  std::atomic<bool> begun_ = false;
  std::vector<std::string> calls_;  // since the first handler began
  std::function<Answer(const std::string& call)> on_call_;
  Worker* worker_ = nullptr;
  uint64_t undelivered_ = 0;
  bool left_damaged_ = false;

  SystemClock clock_;
};

TEST_F(WorkerTest, ExitCodesDecideWhatBecomesOfTheJob) {
  for (uint64_t id = 1; id <= 5; ++id) {
    AddJob(id);
  }
  const Status status =
      RunWorker(Drain({"sh",
                       "-c",
                       "case $DELAYD_JOB_ID in 1) exit 0;; 2) exit 75;; 3) echo why >&2; exit "
                       "100;; 4) echo bad >&2; exit 3;; 5) kill -9 $$;; esac"}));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(calls_,
              ElementsAre("1-1-1/ack {}",
                          R"x(2-1-2/nack {"error":"asked for a retry (exit 75)"})x",
                          R"x(3-1-3/bury {"error":"asked to be buried (exit 100): why"})x",
                          R"x(4-1-4/nack {"error":"exit 3: bad"})x",
                          R"x(5-1-5/nack {"error":"killed by signal 9"})x"));
  EXPECT_THAT(err_.str(), HasSubstr("job 1 order:1001 attempt 1: ack after "));
  EXPECT_THAT(err_.str(), HasSubstr("handed out 3ms late\n"));
}

TEST_F(WorkerTest, JsonIsOneLineForEachJobAndNothingElseOnStdout) {
  for (uint64_t id = 1; id <= 3; ++id) {
    AddJob(id);
  }
  context_.globals.output = OutputFormat::kJsonl;
  context_.globals.quiet = true;  // of words, and there are none
  on_call_ = [](const std::string& call) -> Answer {
    return call == "3-1-3/ack" ? Problem(FailedPrecondition("the lease is over", "lease_lost"))
                               : Ok(protocol::JobToJson(SomeJob()));
  };
  EXPECT_TRUE(
      RunWorker(Drain({"sh", "-c", "test $DELAYD_JOB_ID != 2 || { echo bad >&2; exit 3; }"})).ok());
  std::istringstream lines(out_.str());
  std::vector<std::string> shown;
  for (std::string line; std::getline(lines, line);) {
    shown.push_back(line.substr(0, line.find(",\"took_ms\"")));
    EXPECT_THAT(line, ::testing::EndsWith(",\"lateness_ms\":3}"));
  }
  const std::string job = R"("queue":"orders","key":"order:1001","attempt":1,)";
  EXPECT_THAT(
      shown,
      ElementsAre(
          R"({"id":1,)" + job + R"("action":"ack","told":true)",
          R"({"id":2,)" + job + R"("action":"nack","told":true,"error":"exit 3: bad")",
          R"({"id":3,)" + job +
              R"~("action":"ack","told":false,"error":"refused ack (the lease is over)")~"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(WorkerTest, CountIsAnUpperBoundWhateverTheConcurrency) {
  for (uint64_t id = 1; id <= 10; ++id) {
    AddJob(id);
  }
  WorkOptions options;
  options.make_handler = ExecHandler({"true"});
  options.count = 4;
  options.concurrency = 3;
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, SizeIs(4));
  EXPECT_THAT(jobs_, SizeIs(6));
}

TEST_F(WorkerTest, ALookThatFindsNoJobDoesNotCount) {
  AddJob(1);
  empty_looks_ = 2;
  WorkOptions options;
  options.make_handler = ExecHandler({"true"});
  options.count = 1;
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, SizeIs(1));
}

TEST_F(WorkerTest, DrainEndsWhenNoJobIsReadyAndNotWhenACapHoldsThemBack) {
  AddJob(1);
  empty_looks_ = 3;
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, ElementsAre("1-1-1/ack {}"));
}

TEST_F(WorkerTest, DrainDoesNotEndWhereADaemonGoesBeforeItTellsWhetherACapHoldsJobsBack) {
  AddJob(1);
  empty_looks_ = 1;
  lost_counts_ = 1;
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, ElementsAre("1-1-1/ack {}"));
}

TEST_F(WorkerTest, DrainDoesNotWaitForTheEndOfAPauseAndTellsOfIt) {
  AddJob(1);
  empty_looks_ = 3;
  paused_ = true;
  damaged_ = 2;  // nobody gets them, paused or not
  WorkOptions options = Drain({"true"});
  options.concurrency = 3;
  EXPECT_TRUE(RunWorker(std::move(options)).ok());
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_EQ(err_.str(),
            "queue orders is paused, with 1 job ready; resume it with: delayctl resume orders\n");
}

TEST_F(WorkerTest, DrainDoesNotWaitForDamagedJobsAndTellsOfThem) {
  AddJob(1);
  damaged_ = 2;
  empty_looks_ = 1;
  WorkOptions options = Drain({"true"});
  options.concurrency = 3;
  EXPECT_TRUE(RunWorker(std::move(options)).ok());
  EXPECT_THAT(calls_, ElementsAre("1-1-1/ack {}"));
  EXPECT_TRUE(left_damaged_);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("damaged records keep 2 jobs of queue orders from being handed out; "
                              "run 'delayctl verify'"),
                    Not(ContainsRegex("damaged records.*\n(.*\n)*.*damaged records"))));
}

TEST_F(WorkerTest, AnOutageIsWaitedForWithOneMessage) {
  AddJob(1);
  outages_ = 2;
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, ElementsAre("1-1-1/ack {}"));
  const std::string said = err_.str();
  EXPECT_THAT(said, HasSubstr("nobody there; waiting for delayd\ndelayd answers again\n"));
}

TEST_F(WorkerTest, AnAckIsRepeatedUntilItIsAnswered) {
  AddJob(1);
  std::deque<Answer> answers = {Unknown("lost", "outcome_unknown"),
                                // Of a proxy before the daemon.
                                Ok("<html>", 500),
                                Ok("<html>", 503),
                                Ok(protocol::JobToJson(SomeJob()))};
  on_call_ = [&](const std::string&) {
    Answer answer = answers.front();
    answers.pop_front();
    return answer;
  };
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, SizeIs(4));
}

TEST_F(WorkerTest, ARefusedAckIsSaidAndNotRepeated) {
  AddJob(1);
  on_call_ = [](const std::string&) {
    return Problem(FailedPrecondition("lease is over", "lease_lost"));
  };
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, SizeIs(1));
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("refused ack (lease is over) after "), Not(HasSubstr(": ack"))));
  EXPECT_EQ(undelivered_, 1U);
}

TEST_F(WorkerTest, AnAckOfWhichNobodyKnowsIsNoLineOfAnAck) {
  AddJob(1);
  int calls = 0;
  on_call_ = [&](const std::string&) {
    return ++calls == 1 ? Answer(Unknown("lost", "outcome_unknown"))
                        : Problem(FailedPrecondition("lease is over", "lease_lost"));
  };
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("attempt 1: unknown, the answer to ack was lost (lease is over)"),
                    Not(HasSubstr(": ack"))));
  EXPECT_EQ(undelivered_, 1U);
}

TEST_F(WorkerTest, AnAckThatIsRefusedThoughTheLeaseLivesIsRemembered) {
  AddJob(1);
  on_call_ = [](const std::string&) {
    return Problem(PermissionDenied("the token is not known", "unauthenticated"));
  };
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_THAT(calls_, SizeIs(1));
  EXPECT_THAT(err_.str(), HasSubstr("refused ack (the token is not known) after "));
  EXPECT_EQ(undelivered_, 1U);
}

TEST_F(WorkerTest, TheLeaseIsExtendedWhileTheHandlerRuns) {
  AddJob(1);
  // The handler ends when the second extension has come, not after a time.
  const std::string flag = SetFlag();
  on_call_ = [&](const std::string&) {
    if (std::count_if(calls_.begin(), calls_.end(), [](const std::string& c) {
          return c.find("/extend") != std::string::npos;
        }) == 2) {
      unlink(flag.c_str());
    }
    return Ok(protocol::JobToJson(SomeJob()));
  };
  WorkOptions options = Drain({"sh", "-c", "while [ -e \"$0\" ]; do sleep 0.01; done", flag});
  options.lease = Millis(200);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, Contains(R"(1-1-1/extend {"lease":"200ms"})"));
  EXPECT_EQ(calls_.back(), "1-1-1/ack {}");
}

TEST_F(WorkerTest, ALostLeaseStopsTheHandler) {
  AddJob(1);
  on_call_ = [](const std::string&) {
    return Problem(FailedPrecondition("lease is over", "lease_lost"));
  };
  WorkOptions options = Drain({"sleep", "1000"});
  options.lease = Millis(200);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, ElementsAre(HasSubstr("/extend")));
  EXPECT_THAT(err_.str(), HasSubstr("lease lost, handler stopped (lease is over)"));
}

TEST_F(WorkerTest, ALeaseThatMayNotBeExtendedIsNotToldToBeLost) {
  AddJob(1);
  on_call_ = [](const std::string&) {
    return Problem(PermissionDenied("the token is not known", "unauthenticated"));
  };
  WorkOptions options = Drain({"sleep", "1000"});
  options.lease = Millis(200);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(err_.str(), HasSubstr(": lease not extended, handler stopped (the token"));
}

TEST_F(WorkerTest, AHandlerWhoseJobIsAnothersIsGoneAtOnce) {
  on_call_ = [](const std::string& call) {
    return call.find("/extend") != std::string::npos
               ? Problem(FailedPrecondition("lease is over", "lease_lost"))
               : Ok(protocol::JobToJson(SomeJob()));
  };
  // Tidies up for ever; with all of its grace, or its lease, the test would hang.
  grace_ = std::chrono::hours(1);
  WorkOptions options = Drain({"sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"});
  for (const bool timed_out : {false, true}) {
    AddJob(1);
    options.lease = timed_out ? grace_ : Millis(200);
    options.handler_timeout = timed_out ? std::optional(Millis(20)) : std::nullopt;
    EXPECT_TRUE(RunWorker(options).ok());
  }
}

TEST_F(WorkerTest, AHandlerIsStoppedWhenItsLeaseIsOverThoughTheDaemonIsAway) {
  AddJob(1);
  on_call_ = [](const std::string&) { return Unavailable("nobody there", "unreachable"); };
  WorkOptions options = Drain({"sleep", "1000"});
  options.lease = Millis(250);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, ::testing::Each(HasSubstr("/extend")));
  EXPECT_THAT(err_.str(), HasSubstr("lease ran out, handler stopped (nobody there)"));
}

TEST_F(WorkerTest, AHandlerIsGoneWhenItsLeaseIsOverThoughTheDaemonIsAway) {
  AddJob(1);
  on_call_ = [](const std::string&) { return Unavailable("nobody there", "unreachable"); };
  // Tidies up for ever; with all of its grace the test would hang.
  grace_ = std::chrono::hours(1);
  WorkOptions options = Drain({"sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"});
  options.lease = Millis(1000);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(err_.str(),
              ContainsRegex("(^|\n)job 1 order:1001 attempt 1: lease ran out, handler "
                            "stopped \\(nobody there\\)"));
}

TEST_F(WorkerTest, AHandlerHasAPartOfItsLeaseToEndInWhenTheDaemonIsAway) {
  on_call_ = [](const std::string&) { return Unavailable("nobody there", "unreachable"); };
  const std::string flag = SetFlag();
  // On a busy machine the part of a short lease may be too short for the handler.
  for (const Millis lease : {Millis(2000), Millis(8000), Millis(30'000)}) {
    AddJob(1);
    WorkOptions options =
        Drain({"sh", "-c", "trap 'unlink \"$0\"; exit' TERM; while :; do sleep 0.01; done", flag});
    options.lease = lease;
    EXPECT_TRUE(RunWorker(options).ok());
    if (access(flag.c_str(), F_OK) != 0) {
      return;
    }
  }
  ADD_FAILURE() << "it was killed before it could end";
}

TEST_F(WorkerTest, ASlotThatGetsNoThreadEndsTheWorkInOrder) {
  AddJob(1);
  const test::NoThreads refused;
  const Status status = RunWorker(Drain({"true"}));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("for job 1 of --concurrency 1"));
  EXPECT_THAT(status.message(), HasSubstr("TasksMax="));
}

TEST_F(WorkerTest, AHandlerThatTakesTooLongIsEndedWithItsGroup) {
  AddJob(1);
  WorkOptions options = Drain({"sh", "-c", "sleep 1000; exit 0"});
  options.handler_timeout = Millis(20);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_, ElementsAre(R"(1-1-1/nack {"error":"handler timed out after 20ms"})"));
}

TEST_F(WorkerTest, TheLeaseOutlivesTheTimeInWhichAHandlerEnds) {
  AddJob(1);
  WorkOptions options = Drain({"sleep", "1000"});
  options.handler_timeout = Millis(20);
  options.lease = Millis(14'000);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_THAT(calls_,
              ElementsAre(R"(1-1-1/extend {"lease":"15s"})",
                          R"(1-1-1/nack {"error":"handler timed out after 20ms"})"));
}

TEST_F(WorkerTest, AnAckThatIsNotDeliveredIsRemembered) {
  AddJob(1);
  on_call_ = [this](const std::string&) {
    if (!worker_->stopping()) {
      worker_->Stop();
    }
    return Unavailable("nobody there", "unreachable");
  };
  EXPECT_TRUE(RunWorker(Drain({"true"})).ok());
  EXPECT_EQ(undelivered_, 1U);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("not delivered ack (nobody there"), Not(HasSubstr(": ack"))));
}

TEST_F(WorkerTest, TheFirstStopLetsHandlersFinish) {
  AddJob(1);
  AddJob(2);
  const std::string flag = SetFlag();
  // The lease is extended while it runs: then stop, then let it end.
  on_call_ = [&](const std::string& call) {
    if (call.find("/extend") != std::string::npos && !worker_->stopping()) {
      worker_->Stop();
      unlink(flag.c_str());
    }
    return Ok(protocol::JobToJson(SomeJob()));
  };
  WorkOptions options;
  options.make_handler =
      ExecHandler({"sh", "-c", "while [ -e \"$0\" ]; do sleep 0.01; done", flag});
  options.lease = Millis(200);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_EQ(calls_.back(), "1-1-1/ack {}");
  EXPECT_THAT(jobs_, SizeIs(1));
}

TEST_F(WorkerTest, TheSecondStopEndsHandlersAndHandsTheJobsBack) {
  AddJob(1);
  on_call_ = [&](const std::string& call) {
    if (call.find("/extend") != std::string::npos && !worker_->stopping()) {
      worker_->Stop();
      worker_->Stop();
    }
    return Ok(protocol::JobToJson(SomeJob()));
  };
  WorkOptions options;
  options.make_handler = ExecHandler({"sleep", "1000"});
  options.lease = Millis(200);
  EXPECT_TRUE(RunWorker(options).ok());
  EXPECT_EQ(
      calls_.back(),
      R"(1-1-1/nack {"delay":"0s","error":"the worker was stopped","counts_as_attempt":false})");
}

TEST_F(WorkerTest, TheSecondStopDoesNotWaitForADaemonThatHangs) {
  AddJob(1);
  on_call_ = [&](const std::string&) -> Answer {
    if (!worker_->stopping()) {
      worker_->Stop();
      worker_->Stop();
    }
    return Unknown("no answer", "timed_out");
  };
  WorkOptions options;
  options.make_handler = ExecHandler({"sleep", "1000"});
  options.lease = Millis(60'000);
  options.handler_timeout = Millis(20);
  EXPECT_TRUE(RunWorker(options).ok());
  // The extension that makes room for its grace is not needed: the lease is long.
  EXPECT_THAT(calls_, ElementsAre(HasSubstr("/nack"), HasSubstr("/nack")));
  EXPECT_EQ(daemon_.requests().back().timeout, Millis(1000));
  EXPECT_EQ(undelivered_, 1U);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr(": not delivered nack ("), HasSubstr(") (no answer")));
  EXPECT_THAT(err_.str(), Not(HasSubstr("waiting for delayd")));
}

TEST_F(WorkerTest, WhatNoWaitingCuresEndsTheWork) {
  FakeDaemon refusing([](const Request&) { return Problem(PermissionDenied("not yours")); });
  context_.connect = [&]() -> StatusOr<std::unique_ptr<protocol::Client>> {
    return refusing.Connect();
  };
  WorkOptions options;
  options.make_handler = ExecHandler({"true"});
  options.concurrency = 2;
  const Status status = RunWorker(options);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace delayd::cli

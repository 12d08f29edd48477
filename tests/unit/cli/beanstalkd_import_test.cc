#include "cli/beanstalkd_import.h"

#include <poll.h>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "protocol/job_json.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/protocol/scripted_server.h"

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;

enum class AtDelete : uint8_t { kHangsUp, kIsSilent, kDeletes };

// A beanstalkd with one job, in the tube "orders": what it says of it, until it is to be deleted.
class FakeSource {
 public:
  explicit FakeSource(const std::string& state,
                      const std::string& seconds_left = "0",
                      AtDelete at_delete = AtDelete::kHangsUp,
                      std::string tubes = "- orders\n")
      : state_(state),
        at_delete_(at_delete),
        tubes_("---\n" + std::move(tubes)),
        job_stats_("---\nid: 7\ntube: orders\nstate: " + state +
                   "\npri: 5\nttr: 60\ntime-left: " + seconds_left + "\n"),
        server_({[this](int fd) { Answer(fd); }}) {}

  std::string address() const { return server_.address(); }

 private:
  static std::string Body(const std::string& head, const std::string& body) {
    return head + " " + std::to_string(body.size()) + "\r\n" + body;
  }

  std::string ReplyTo(std::string_view command) const {
    if (command.starts_with("stats-job")) {
      return Body("OK", job_stats_);
    }
    if (command.starts_with("stats")) {
      return Body("OK", "---\nid: 0123abcd\n");
    }
    if (command == "list-tubes") {
      return Body("OK", tubes_);
    }
    if (command == "peek-" + state_) {
      return Body("FOUND 7", "hello");
    }
    const std::pair<std::string_view, std::string> replies[] = {{"delete-key ", "UNKNOWN_COMMAND"},
                                                                {"watch ", "WATCHING 1"},
                                                                {"use ", "USING orders"},
                                                                {"reserve-with", "TIMED_OUT"},
                                                                {"peek-", "NOT_FOUND"}};
    for (const auto& [begin, reply] : replies) {
      if (command.starts_with(begin)) {
        return reply;
      }
    }
    return {};
  }

  void Answer(int fd) const {
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = read(fd, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
      for (size_t end = 0; (end = text.find("\r\n")) != std::string::npos; text.erase(0, end + 2)) {
        const std::string reply = ReplyTo(std::string_view(text).substr(0, end));
        if (reply.empty() && at_delete_ != AtDelete::kDeletes) {
          if (at_delete_ == AtDelete::kIsSilent) {
            protocol::ScriptedServer::AwaitEnd(fd);
          }
          return;
        }
        protocol::ScriptedServer::Write(fd, (reply.empty() ? "DELETED" : reply) + "\r\n");
      }
    }
  }

  std::string state_;
  AtDelete at_delete_;
  std::string tubes_;
  std::string job_stats_;
  protocol::ScriptedServer server_;
};

struct BrokenOff {
  Status status;
  BeanstalkdImport::Counts counts;
  std::vector<Request> requests;
};

BrokenOff ImportFrom(const FakeSource& source, FakeDaemon::Function answer = Accept) {
  FakeDaemon daemon(std::move(answer));
  Api api(daemon.Connect(), Millis(1000));
  const auto client = beanstalk::Client::Connect(source.address(), Millis(20'000));
  SimulatedClock clock({.wall = WallFromMillis(kTestNow), .boot = BootFromMillis(0)});
  BeanstalkdImport import(
      client->get(),
      &api,
      [](const BeanstalkdImport::Counts&) { return OkStatus(); },
      Patience(
          &clock, Millis(0), [](Millis) { return OkStatus(); }, [](const Status&) {}));
  const Status status = import.Run();
  return {status, import.counts(), daemon.requests()};
}

Answer InterruptedAtEnqueue(const Request& request) {
  raise(SIGINT);
  return Accept(request);
}

JobSpec SentOf(const BrokenOff& import) {
  return *protocol::ParseJobSpec(import.requests.at(0).body, 1000);
}

TEST(BeanstalkdImportTest, P7AJobIsTheSameWhateverItsSourceSaysOfItNow) {
  const FakeSource first("delayed", "60");
  const JobSpec sent = SentOf(ImportFrom(first));
  EXPECT_EQ(sent.key, "beanstalkd:0123abcd:7");
  EXPECT_EQ(std::get<DueAfter>(sent.due).delay, Millis(61'000));
  ASSERT_NE(sent.past->fingerprint, 0U) << "it would stand for the rest of its delay";
  const FakeSource later("delayed", "30");
  const FakeSource buried("buried");
  for (const FakeSource* source : {&later, &buried}) {
    const JobSpec again = SentOf(ImportFrom(*source));
    EXPECT_EQ(again.key, sent.key);
    EXPECT_EQ(again.past->fingerprint, sent.past->fingerprint);
  }
}

// The command with which a job that was delayed by 60 s more, at an age of 100 s, is put back.
std::string PutBackAtAge(const std::string& age) {
  const auto stats = [](const std::string& state, const std::string& at) {
    return "---\ntube: orders\nstate: " + state + "\npri: 5\nage: " + at + "\ntime-left: 60\n";
  };
  std::string last;
  {
    const protocol::ScriptedServer server({[&](int fd) {
      const std::string buried = stats("buried", age);
      const std::string body = "OK " + std::to_string(buried.size()) + "\r\n" + buried + "\r\n";
      std::string text;
      char buffer[4096];
      for (ssize_t count = 0; (count = read(fd, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(count));
        for (size_t end = 0; (end = text.find("\r\n")) != std::string::npos;
             text.erase(0, end + 2)) {
          last = text.substr(0, end);
          protocol::ScriptedServer::Write(fd,
                                          last.starts_with("stats-job") ? body : "NOT_FOUND\r\n");
        }
      }
    }});
    const auto source = beanstalk::Client::Connect(server.address(), Millis(20'000));
    SetAside set_aside(source->get());
    EXPECT_TRUE(set_aside.Put(7, stats("delayed", "100")).ok());
    EXPECT_TRUE(set_aside.PutBack().ok());
  }
  return last;
}

TEST(SetAsideTest, ADelayGoesOnAndNeverEndsEarly) {
  EXPECT_EQ(PutBackAtAge("110"), "release 7 5 51");
  EXPECT_EQ(PutBackAtAge("500"), "release 7 5 1");
  EXPECT_EQ(PutBackAtAge("40"), "release 7 5 61") << "the source's clock was set back";
}

// As a beanstalkd does, this source reads no further where its replies are not read.
TEST(BeanstalkdImportTest, ASourceOfThousandsOfTubesIsHeardMeanwhile) {
  std::string tubes;
  for (int i = 1000; i < 3000; ++i) {
    tubes += "- " + std::to_string(i) + std::string(190, 't') + "\n";
  }
  const FakeSource source("buried", "0", AtDelete::kDeletes, tubes + "- orders\n");
  const Outcome outcome =
      Ctl({"import", "--from-beanstalkd", source.address()}, {.daemon = InterruptedAtEnqueue});
  EXPECT_EQ(outcome.code, kExitInterrupted) << outcome.err;
}

TEST(BeanstalkdImportTest, WhatIsHereAndMayBeThereStillIsCounted) {
  const FakeSource source("delayed", "60");
  const BrokenOff cut = ImportFrom(source);
  EXPECT_THAT(cut.status.message(), HasSubstr("is not there any more"));
  EXPECT_EQ(cut.counts.undeleted, 1U);

  const FakeSource other("delayed", "60");
  const BrokenOff lost =
      ImportFrom(other, [](const Request&) { return Answer(Unknown("lost", "outcome_unknown")); });
  EXPECT_EQ(lost.counts.imported, 0U);
  EXPECT_EQ(lost.counts.undeleted, 1U) << "it may be here";

  const FakeSource third("delayed", "60");
  EXPECT_EQ(
      ImportFrom(third,
                 [](const Request&) { return Problem(PermissionDenied("you may only read")); })
          .counts.undeleted,
      0U);
}

TEST(BeanstalkdImportTest, ABrokenOffOneSaysWhatANewStartOfTheSourceWouldDouble) {
  const FakeSource source("delayed", "60");
  const Outcome outcome =
      Ctl({"import", "--from-beanstalkd", source.address()}, {.daemon = Accept});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err,
              HasSubstr("; no job is lost, run it again for the rest; if beanstalkd is started "
                        "anew before that, 1 job may come twice\n"));
}

TEST(BeanstalkdImportTest, ASourceThatIsSilentIsGivenUpByTheTimeoutOrAnInterrupt) {
  const FakeSource source("delayed", "60", AtDelete::kIsSilent);
  const Outcome slow = Ctl({"import", "--from-beanstalkd", source.address(), "--timeout", "30ms"},
                           {.daemon = Accept});
  EXPECT_EQ(slow.code, kExitTimedOut);
  EXPECT_THAT(slow.err, HasSubstr("does not answer; no job is lost"));

  const FakeSource other("delayed", "60", AtDelete::kIsSilent);
  const Outcome interrupted =
      Ctl({"import", "--from-beanstalkd", other.address(), "--timeout", "1h"},
          {.daemon = InterruptedAtEnqueue});
  EXPECT_EQ(interrupted.code, kExitInterrupted);
  EXPECT_THAT(interrupted.err, HasSubstr("1 job may come twice"));
}

TEST(BeanstalkdImportTest, ADaemonThatIsSilentIsGivenUpByAnInterrupt) {
  const FakeSource source("delayed", "60");
  const auto silent = [](const Request& request) {
    raise(SIGINT);
    pollfd given_up{.fd = request.give_up_fd, .events = POLLIN, .revents = 0};
    return poll(&given_up, 1, 0) == 1 ? Answer(Unknown("silent", "timed_out")) : Accept(request);
  };
  const Outcome outcome =
      Ctl({"import", "--from-beanstalkd", source.address()}, {.daemon = silent});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_THAT(outcome.err, HasSubstr("imported 0 jobs"));
  EXPECT_THAT(outcome.err, HasSubstr("1 job may come twice"));
}

TEST(BeanstalkdImportTest, AnInterruptEndsItBehindTheJobsUnderWay) {
  const FakeSource source("delayed", "60", AtDelete::kDeletes);
  const Outcome outcome =
      Ctl({"import", "--from-beanstalkd", source.address()}, {.daemon = InterruptedAtEnqueue});
  EXPECT_EQ(outcome.code, kExitInterrupted);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted; no job is lost, run it again for the rest\n"));
}

}  // namespace
}  // namespace delayd::cli

#include "cli/importer.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/no_threads.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

size_t CountLines(const std::string& body) {
  return static_cast<size_t>(std::count(body.begin(), body.end(), '\n'));
}

class ImporterTest : public ::testing::Test {
 protected:
  void Start(FakeDaemon::Function answer, const ImportOptions& options = {}) {
    daemon_ = std::make_unique<FakeDaemon>(std::move(answer));
    api_ = std::make_unique<Api>(daemon_->Connect(), Millis(1000));
    Importer::Hooks hooks;
    hooks.sleep = [this](Millis time) {
      slept_ += time;
      clock_.Advance(time);
      return OkStatus();
    };
    hooks.bad_line = [this](const Status& status) { bad_.push_back(status.message()); };
    hooks.warn = [this](const Status& status) { said_.push_back(status.message()); };
    hooks.acknowledged = [this](uint64_t line, const protocol::EnqueuedJob&) {
      acknowledged_.push_back(line);
      return acknowledged_result_;
    };
    hooks.batch_done = [] { return OkStatus(); };
    importer_ = std::make_unique<Importer>(
        std::vector<Api*>{api_.get()}, &clock_, options, std::move(hooks));
  }

  Status Feed(const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) {
      DELAYD_RETURN_IF_ERROR(importer_->AddLine(i + 1, lines[i]));
    }
    return importer_->Flush();
  }

  std::vector<size_t> BatchSizes() {
    std::vector<size_t> sizes;
    for (const Request& request : daemon_->requests()) {
      sizes.push_back(CountLines(request.body));
    }
    return sizes;
  }

  SimulatedClock clock_{{.wall = WallFromMillis(kTestNow), .boot = BootFromMillis(0)}};
  std::unique_ptr<FakeDaemon> daemon_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Importer> importer_;
  Millis slept_{0};
  std::vector<std::string> bad_;
  std::vector<std::string> said_;
  std::vector<uint64_t> acknowledged_;
  Status acknowledged_result_ = OkStatus();
};

const std::string kPlain = R"({"payload":"x"})";
const std::string kKeyed = R"({"payload":"x","key":"k"})";

TEST_F(ImporterTest, SendsBatchesInOrderAndCountsBlankLines) {
  Start(Accept, {.batch_jobs = 2});
  EXPECT_TRUE(Feed({kPlain, "", kPlain, "  \r", kPlain}).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 1));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 3, 5));
  EXPECT_EQ(importer_->counts().imported, 3U);
  EXPECT_EQ(importer_->counts().settled_line, 5U);
}

TEST_F(ImporterTest, AnInterruptHurriesOnlyWhatCanBeSentAgain) {
  Start(Accept, {.batch_jobs = 1, .give_up_fd = 7});
  EXPECT_TRUE(Feed({kKeyed, kPlain, kKeyed}).ok());
  std::vector<int> give_up_fds;
  for (const Request& request : daemon_->requests()) {
    give_up_fds.push_back(request.give_up_fd);
  }
  EXPECT_THAT(give_up_fds, ElementsAre(7, -1, 7));
}

TEST_F(ImporterTest, BatchesAreBoundedInBytesToo) {
  Start(Accept, {.batch_bytes = 100});
  EXPECT_TRUE(Feed({kPlain, kPlain, kPlain, kPlain, kPlain}).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2, 1));
}

TEST_F(ImporterTest, ABadLineIsNamedAfterEverythingBeforeItWasSent) {
  Start(Accept);
  const Status status = Feed({kPlain, kPlain, R"({"dealy":"1s"})", kPlain});
  EXPECT_EQ(status.message(), "line 3: member 'dealy': is unknown; did you mean 'delay'?");
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
  EXPECT_EQ(importer_->counts().settled_line, 2U);
}

TEST_F(ImporterTest, WithContinueBadLinesAreReportedAndLeftOut) {
  Start(Accept, {.keep_going = true});
  EXPECT_TRUE(Feed({kPlain, "{", kPlain, "[]"}).ok());
  EXPECT_THAT(
      bad_, ElementsAre(HasSubstr("line 2: malformed JSON"), HasSubstr("line 4: malformed JSON")));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 3));
  EXPECT_EQ(importer_->counts().bad_lines, 2U);
  EXPECT_EQ(importer_->counts().settled_line, 4U);
}

TEST_F(ImporterTest, ABatchThatIsRefusedIsSentLineByLineToFindTheLine) {
  const auto daemon = [](const Request& request) {
    return request.body.find("conflict") == std::string::npos
               ? Accept(request)
               : Problem(AlreadyExists("line 1: key conflict", "key_conflict"));
  };
  const std::vector<std::string> lines = {kPlain, kPlain, R"({"key":"conflict"})", kPlain};
  Start(daemon);
  const Status status = Feed(lines);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "line 3: key conflict");
  EXPECT_THAT(BatchSizes(), ElementsAre(4, 1, 1, 1));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));

  acknowledged_.clear();
  Start(daemon, {.keep_going = true});
  EXPECT_TRUE(Feed(lines).ok());
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2, 4));
  EXPECT_THAT(bad_, ElementsAre("line 3: key conflict"));
}

// nginx takes 1 MB unless told otherwise, and says so in HTML.
TEST_F(ImporterTest, ABatchThatIsTooLargeForAProxyIsSentLineByLine) {
  Start([](const Request& request) {
    return CountLines(request.body) > 1 ? Ok("<html>Request Entity Too Large</html>", 413)
                                        : Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain}).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 1, 1));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ImporterTest, AConflictIsAnsweredInTheLine) {
  Start([](const Request&) {
    return Problem(
        AlreadyExists("line 1: key on_conflict in queue q belongs to a job with other "
                      "content; cancel that job, use another key, or enqueue with "
                      "on_conflict",
                      "key_conflict"));
  });
  EXPECT_EQ(Feed({kKeyed}).message(),
            "line 1: key on_conflict in queue q belongs to a job with other content; cancel that "
            "job, use another key, or write \"on_conflict\":\"keep\" or \"replace\" into the line");
}

TEST_F(ImporterTest, AnAbsentDaemonIsWaitedForWithOneMessage) {
  int calls = 0;
  Start([&](const Request& request) {
    return ++calls <= 5 ? Answer(Unavailable("nobody there", "unreachable")) : Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain}).ok());
  EXPECT_THAT(said_, ElementsAre("nobody there; trying for 30s"));
  EXPECT_EQ(slept_, Millis(100 + 200 + 400 + 800 + 1600));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
}

TEST_F(ImporterTest, AnAbsentDaemonIsGivenUpInTheEnd) {
  Start([](const Request&) { return Answer(Unavailable("nobody there", "unreachable")); },
        {.retry_for = Millis(5000)});
  const Status status = Feed({kPlain, kPlain});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "lines 1 to 2: nobody there");
  EXPECT_EQ(slept_, Millis(5000));
}

TEST_F(ImporterTest, ALostAnswerIsRepeatedWhenEveryLineHasAKey) {
  int calls = 0;
  Start([&](const Request& request) {
    return ++calls == 1 ? Answer(Unknown("lost", "outcome_unknown")) : Accept(request);
  });
  EXPECT_TRUE(Feed({kKeyed, kKeyed}).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2));
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("every line has a key, so it is safe to send them again")));
  EXPECT_EQ(importer_->counts().imported, 2U);
}

TEST_F(ImporterTest, AnswersThatAreLostAgainAndAgainSayWhereToResume) {
  Start([](const Request&) { return Answer(Unknown("lost", "outcome_unknown")); },
        {.retry_for = Millis(5000)});
  const Status status = Feed({kKeyed, kKeyed});
  EXPECT_EQ(status.code(), StatusCode::kUnknown);
  EXPECT_EQ(status.message(), "lines 1 to 2: lost; every line has a key, resume with --skip 0");
}

TEST_F(ImporterTest, ALostAnswerIsNeverRepeatedWhenALineHasNoKey) {
  int calls = 0;
  Start(
      [&](const Request& request) {
        return ++calls == 2 ? Answer(Unknown("lost", "outcome_unknown")) : Accept(request);
      },
      {.batch_jobs = 2});
  const Status status = Feed({kPlain, kPlain, kKeyed, kPlain, kPlain});
  EXPECT_EQ(status.code(), StatusCode::kUnknown);
  EXPECT_THAT(status.message(),
              HasSubstr("lines 3 to 4 may or may not be enqueued; nothing was "
                        "sent again"));
  EXPECT_THAT(status.message(), HasSubstr("--skip 4 if all is there, or --skip 2"));
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
}

// A page in HTML, or what only another version understands: the jobs may be there all the same.
TEST_F(ImporterTest, AnAnswerThatIsNotUnderstoodIsALostOne) {
  for (const char* answer : {"<html>", "{}"}) {
    int calls = 0;
    Start([&](const Request& request) { return ++calls == 2 ? Ok(answer) : Accept(request); },
          {.batch_jobs = 2});
    const Status status = Feed({kPlain, kPlain, kPlain, kPlain, kPlain});
    EXPECT_EQ(status.code(), StatusCode::kUnknown) << answer;
    EXPECT_THAT(status.message(), HasSubstr("lines 3 to 4 may or may not be enqueued"));
    EXPECT_THAT(BatchSizes(), ElementsAre(2, 2)) << answer;
  }
}

TEST_F(ImporterTest, AnAnswerThatIsNotUnderstoodIsNotWaitedOut) {
  Start([](const Request&) { return Ok("{}"); });
  EXPECT_THAT(Feed({R"({"payload":"x","key":"k"})"}).message(), HasSubstr("resume with --skip 0"));
  EXPECT_THAT(BatchSizes(), ElementsAre(1));
}

TEST_F(ImporterTest, AGatewaysTimeoutIsNoneOfTheDaemonsThoughItHasACode) {
  Start([](const Request&) {
    return Ok(R"({"code":"101504","type":"Status report","description":"Send timeout"})", 504);
  });
  EXPECT_EQ(Feed({kPlain}).code(), StatusCode::kUnknown);
  EXPECT_THAT(BatchSizes(), ElementsAre(1));
}

// The job may be done by then: the key does not hold those rules back from a second one.
TEST_F(ImporterTest, ALostAnswerIsNeverRepeatedWhenALineKeepsOrReplaces) {
  for (const std::string rule : {"keep", "replace"}) {
    Start([](const Request&) { return Answer(Unknown("lost", "outcome_unknown")); });
    const Status status = Feed({R"({"payload":"x","key":"k","on_conflict":")" + rule + R"("})"});
    EXPECT_THAT(status.message(),
                HasSubstr("line 1 may or may not be enqueued; nothing was sent "));
    EXPECT_THAT(BatchSizes(), ElementsAre(1)) << rule;
  }
}

TEST_F(ImporterTest, RoomOnTheDiskIsWaitedFor) {
  int calls = 0;
  Start([&](const Request& request) {
    return ++calls <= 2 ? Problem(ResourceExhausted("disk is full", "disk_full")) : Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain}).ok());
  EXPECT_THAT(said_, ElementsAre("disk is full; trying for 30s"));
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2, 2));
}

TEST_F(ImporterTest, ADiskThatIsReadOnlyIsWaitedForToo) {
  int calls = 0;
  Start([&](const Request& request) {
    return ++calls == 1 ? Problem(ResourceExhausted("mount it writable", "disk_read_only"))
                        : Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain}).ok());
  EXPECT_THAT(said_, ElementsAre("mount it writable; trying for 30s"));
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2));
}

TEST_F(ImporterTest, ADiskThatStaysFullIsGivenUp) {
  Start([](const Request&) { return Problem(ResourceExhausted("disk is full", "disk_full")); },
        {.retry_for = Millis(5000)});
  EXPECT_EQ(Feed({kPlain, kPlain}).message(), "lines 1 to 2: disk is full");
  EXPECT_EQ(slept_, Millis(5000));
  EXPECT_THAT(acknowledged_, IsEmpty());
}

// A batch that is larger than the quota would wait for ever.
TEST_F(ImporterTest, RoomUnderAQuotaIsWaitedForLineByLineWithOneMessage) {
  size_t room = 1;
  Start([&](const Request& request) {
    if (CountLines(request.body) > room) {
      room = slept_ > Millis(0) ? 1 : room;  // a worker is done while it waits
      return Problem(ResourceExhausted("queue q is full", "queue_full"));
    }
    room -= CountLines(request.body);
    return Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain, kPlain}).ok());
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2, 3));
  EXPECT_THAT(said_, ElementsAre("queue q is full; trying for 30s"));
  EXPECT_THAT(bad_, IsEmpty());
  EXPECT_EQ(importer_->counts().settled_line, 3U);
}

TEST_F(ImporterTest, RoomThatNobodyMakesIsGivenUp) {
  for (const bool keep_going : {false, true}) {
    slept_ = Millis(0);
    Start([](const Request&) { return Problem(ResourceExhausted("user is full", "user_full")); },
          {.keep_going = keep_going, .retry_for = Millis(5000)});
    const Status status = Feed({kPlain, kPlain});
    EXPECT_EQ(status.reason(), "user_full");
    EXPECT_EQ(status.message(), "line 1: user is full");
    EXPECT_EQ(slept_, Millis(5000));
    EXPECT_EQ(importer_->counts().settled_line, 0U);
  }
}

TEST_F(ImporterTest, ADrainIsWaitedFor) {
  int calls = 0;
  Start([&](const Request& request) {
    return ++calls <= 2 ? Problem(ResourceExhausted("delayd is draining", "draining"))
                        : Accept(request);
  });
  EXPECT_TRUE(Feed({kPlain, kPlain}).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(2, 2, 2));
}

TEST_F(ImporterTest, WhatWasAcknowledgedIsSettledThoughItCouldNotBeNoted) {
  acknowledged_result_ = Internal("cannot write the ack log");
  Start(Accept, {.batch_jobs = 2});
  EXPECT_EQ(Feed({kPlain, kPlain, kPlain}).message(), "cannot write the ack log");
  EXPECT_EQ(importer_->counts().settled_line, 2U) << "a resume from line 1 would double line 2";
  EXPECT_EQ(importer_->counts().imported, 2U);
}

TEST_F(ImporterTest, WhatWasSkippedIsSettled) {
  Start([](const Request&) { return Answer(Unknown("lost", "outcome_unknown")); }, {.skip = 7});
  EXPECT_TRUE(importer_->AddLine(8, kPlain).ok());
  EXPECT_THAT(importer_->Flush().message(), HasSubstr("--skip 8 if all is there, or --skip 7"));
}

TEST_F(ImporterTest, ExportedLinesKeepTheirDueTime) {
  Start(Accept);
  EXPECT_TRUE(Feed({protocol::JobToJson(SomeJob())}).ok());
  EXPECT_EQ(
      daemon_->requests().at(0).body,
      R"({"queue":"orders","due":"2027-01-01T09:30:00.000Z","key":"order:1001","priority":1024,)"
      R"("lease":"1m","max_attempts":25,"created":"2027-01-01T09:00:00.000Z",)"
      R"("payload":"{\"order_id\":1001}"})"
      "\n");
}

// Several connections to one daemon, as import has them; one line a batch.
class OverlapTest : public ImporterTest {
 protected:
  OverlapTest() {
    Start([](const Request& request) {
      return request.body.find("refused") == std::string::npos
                 ? Accept(request)
                 : Problem(AlreadyExists("the key is taken", "key_conflict"));
    });
    ConnectLanes();
    hooks_.acknowledged = [this](uint64_t line, const protocol::EnqueuedJob&) {
      acknowledged_.push_back(line);
      return OkStatus();
    };
    hooks_.batch_done = [] { return OkStatus(); };
    hooks_.bad_line = [this](const Status& status) { bad_.push_back(status.message()); };
  }

  // Batches may be under way still, on the lanes.
  ~OverlapTest() override { importer_.reset(); }

  void ConnectLanes() {
    lanes_.clear();
    for (int i = 0; i < 3; ++i) {
      apis_.push_back(std::make_unique<Api>(daemon_->Connect(), Millis(1000)));
      lanes_.push_back(apis_.back().get());
    }
  }

  void Make(bool keep_going) {
    importer_ = std::make_unique<Importer>(
        lanes_, &clock_, ImportOptions{.batch_jobs = 1, .keep_going = keep_going}, hooks_);
  }

  std::vector<std::unique_ptr<Api>> apis_;
  std::vector<Api*> lanes_;
  Importer::Hooks hooks_;
};

TEST_F(OverlapTest, AnAbsentDaemonIsToldOfOnceForAllThatWasUnderWay) {
  std::set<std::string> met;
  Start([&met](const Request& request) {
    return met.insert(request.body).second ? Answer(Unavailable("nobody there", "unreachable"))
                                           : Accept(request);
  });
  hooks_.sleep = [](Millis) { return OkStatus(); };
  hooks_.warn = [this](const Status& status) { said_.push_back(status.message()); };
  ConnectLanes();
  Make(/*keep_going=*/false);
  EXPECT_TRUE(Feed({R"({"key":"k1"})", R"({"key":"k2"})", R"({"key":"k3"})"}).ok());
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2, 3));
  EXPECT_THAT(said_, ElementsAre("nobody there; trying for 30s"));
}

const std::vector<std::string> kOneRefused = {R"({"key":"k1"})",
                                              R"({"key":"k2"})",
                                              R"({"key":"refused"})",
                                              R"({"key":"k4"})",
                                              R"({"key":"k5"})",
                                              kPlain};

TEST_F(OverlapTest, ARefusedLineEndsItWhereItCanBeResumed) {
  Make(/*keep_going=*/false);
  EXPECT_THAT(Feed(kOneRefused).message(), HasSubstr("line 3: the key is taken"));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
  EXPECT_EQ(importer_->counts().settled_line, 2U) << "behind it nothing is sure";
  for (const Request& request : daemon_->requests()) {
    EXPECT_THAT(request.body, HasSubstr("key")) << "a line without a key would be doubled";
  }
}

TEST_F(OverlapTest, WhereNoThreadCanBeMadeBatchesAreSentWithoutOne) {
  const test::NoThreads refused;
  Make(/*keep_going=*/false);
  EXPECT_TRUE(importer_->AddLine(1, kKeyed).ok());
  EXPECT_THAT(BatchSizes(), ElementsAre(1));
  EXPECT_TRUE(Feed({kKeyed, kKeyed, kKeyed, kKeyed}).ok());
  EXPECT_EQ(importer_->counts().imported, 5U);
}

TEST_F(OverlapTest, ALineWithoutAKeyIsNotSentBeforeThoseBeforeItAreSettled) {
  Make(/*keep_going=*/false);
  EXPECT_FALSE(Feed({R"({"key":"k1"})", R"({"key":"refused"})", kPlain}).ok());
  for (const Request& request : daemon_->requests()) {
    EXPECT_THAT(request.body, HasSubstr("key")) << "the resume would double it";
  }
}

TEST_F(OverlapTest, AnswersAreTakenInTheOrderOfTheLines) {
  Make(/*keep_going=*/true);
  EXPECT_TRUE(Feed(kOneRefused).ok());
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(bad_, ElementsAre(HasSubstr("line 3")));
  EXPECT_EQ(importer_->counts().settled_line, 6U);
}

}  // namespace
}  // namespace delayd::cli

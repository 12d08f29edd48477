// An export of a daemon that goes on serving: jobs move while it is written.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using protocol::JobPageToJson;
using protocol::JobToJson;
using ::testing::HasSubstr;

JobView At(uint64_t id, int64_t minutes) {
  JobView job = SomeJob(id);
  job.due = WallFromMillis(kTestNow + minutes * 60'000);
  return job;
}

std::string Lines(const std::vector<JobView>& jobs) {
  std::string lines;
  for (const JobView& job : jobs) {
    lines += JobToJson(job) + "\n";
  }
  return lines;
}

// Answers look after look, each of pages; between two of them a job was rescheduled.
class MovingJobs {
 public:
  using Page = std::vector<JobView>;

  explicit MovingJobs(std::vector<std::vector<Page>> looks) : looks_(std::move(looks)) {}

  Answer operator()(const Request& request) {
    if (request.target == "/v1/stats") {
      return Ok(R"({"scheduled":3,"now":"2027-01-01T09:00:00.000Z","rescheduled":)" +
                std::to_string(std::min(look_, looks_.size() - 1)) + "}");
    }
    if (request.target.starts_with("/v1/queues")) {
      return Ok(protocol::QueuesToJson({}));
    }
    if (request.target.starts_with("/v1/jobs/")) {
      return Ok(JobToJson(shown_.at(std::stoul(request.target.substr(9)))));
    }
    return NextPage(request);
  }

 private:
  Answer NextPage(const Request& request) {
    const std::vector<Page>& pages = looks_.at(std::min(look_, looks_.size() - 1));
    Page page = pages.at(page_);
    for (JobView& job : page) {
      shown_[ToInt(job.id)] = job;
      if (request.target.find("payload=true") == std::string::npos) {
        job.payload.reset();
      }
    }
    const bool is_last = ++page_ == pages.size();
    if (is_last) {
      page_ = 0;
      ++look_;
    }
    return Ok(JobPageToJson({.jobs = page, .next_cursor = is_last ? "" : "c"}));
  }

  std::vector<std::vector<Page>> looks_;
  std::map<uint64_t, JobView> shown_;
  size_t look_ = 0;
  size_t page_ = 0;
};

TEST(LiveExportTest, AJobThatMovesAheadOfTheListStandsOnce) {
  const Outcome outcome =
      Ctl({"export"},
          {.daemon = MovingJobs({{{At(1, 1), At(2, 2)}, {At(3, 3), At(1, 4)}}, {{At(2, 2)}}})});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, Lines({At(1, 1), At(2, 2), At(3, 3)}));
}

TEST(LiveExportTest, AJobThatMovesBehindTheListComesLast) {
  JobView late = At(9, 1);
  late.created = WallFromMillis(kTestNow + 1000);
  const Outcome outcome = Ctl({"export"},
                              {.daemon = MovingJobs({{{At(1, 1), At(2, 2)}},
                                                     {{late, At(3, 1), At(1, 1), At(2, 2)}},
                                                     {{late, At(3, 1), At(1, 1), At(2, 2)}}})});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, Lines({At(1, 1), At(2, 2), At(3, 1)}));
}

TEST(LiveExportTest, WhereNothingMovesItLooksOnce) {
  const Outcome outcome = Ctl({"export"}, {.daemon = MovingJobs({{{At(1, 1)}}})});
  EXPECT_EQ(outcome.out, Lines({At(1, 1)}));
  EXPECT_EQ(std::ranges::count_if(
                outcome.requests,
                [](const Request& request) { return request.target.starts_with("/v1/jobs?"); }),
            1);
}

// As while dead jobs are kicked: each look finds some that were not pending when it began.
TEST(LiveExportTest, ItEndsWhereEachLookFindsAsManyAsTheOneBefore) {
  std::vector<std::vector<MovingJobs::Page>> looks = {{{At(30, 5)}}};
  for (uint64_t id = 1; id <= 20; ++id) {
    looks.push_back({{At(id, 1)}});
  }
  const Outcome outcome = Ctl({"export"}, {.daemon = MovingJobs(looks)});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, Lines({At(30, 5), At(1, 1), At(2, 1)}));
  EXPECT_EQ(outcome.err,
            "exported 3 jobs, but jobs came or moved during each of 3 looks, and one that moved "
            "each time may be missing; for one moment, export a backup\n");
  // Those that fall due meanwhile were not ready when it began.
  const Outcome ready = Ctl({"export", "--state", "ready"}, {.daemon = MovingJobs(looks)});
  EXPECT_EQ(ready.code, 0) << ready.err;
  EXPECT_EQ(ready.out, Lines({At(30, 5), At(1, 1)}));
  EXPECT_EQ(ready.err, "");
}

TEST(LiveExportTest, ItGoesOnWhileEachLookFindsFarFewer) {
  const MovingJobs::Page first = {At(9, 5)};
  const MovingJobs::Page second = {At(1, 1), At(2, 1), At(3, 1), At(4, 1)};
  const Outcome outcome =
      Ctl({"export"}, {.daemon = MovingJobs({{first}, {second}, {{At(5, 1), At(6, 1)}}, {first}})});
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            Lines({At(9, 5), At(1, 1), At(2, 1), At(3, 1), At(4, 1), At(5, 1), At(6, 1)}));
}

// An import gives them the time at which they were created elsewhere, and a new id.
TEST(LiveExportTest, JobsThatAreImportedMeanwhileAreNoReasonToLookAgain) {
  const Outcome outcome = Ctl(
      {"export"}, {.daemon = MovingJobs({{{At(1, 1)}}, {{At(2, 1)}}, {{At(3, 1)}}, {{At(4, 1)}}})});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, Lines({At(1, 1), At(2, 1)}));
  EXPECT_EQ(outcome.err, "");
}

TEST(LiveExportTest, ALowIdTellsWhereTheClockWasSetBack) {
  JobView late = At(1, 1);
  late.created = WallFromMillis(kTestNow + 3'600'000);
  const Outcome outcome =
      Ctl({"export"}, {.daemon = MovingJobs({{{At(2, 2)}}, {{late, At(2, 2)}}})});
  EXPECT_EQ(outcome.out, Lines({At(2, 2), late}));
}

TEST(LiveExportTest, ATimeInWholeSecondsStandsForItsEnd) {
  JobView in_that_second = At(2, 1);
  in_that_second.created = WallFromMillis(kTestNow + 999);
  const Outcome outcome =
      Ctl({"export"}, {.daemon = MovingJobs({{{At(1, 1)}}, {{in_that_second, At(1, 1)}}})});
  EXPECT_EQ(outcome.out, Lines({At(1, 1), in_that_second}));
}

TEST(LiveExportTest, ADurationIsFromTheMomentAtWhichItBegan) {
  const Outcome outcome =
      Ctl({"export", "--due-before", "2m", "--due-after", "2027-01-01T08:00:00Z"},
          {.daemon = MovingJobs({{{At(1, 1)}}, {{At(1, 1)}}})});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string filter =
      "due_before=2027-01-01T09%3A02%3A00.000Z&due_after=2027-01-01T08%3A00%3A00Z";
  EXPECT_EQ(std::ranges::count_if(outcome.requests,
                                  [&](const Request& request) {
                                    return request.target.find(filter) != std::string::npos;
                                  }),
            2);
}

// Answers questions that begin with `target` with a problem once `calls` of them were answered.
FakeDaemon::Function SilentAbout(std::string target, int calls, FakeDaemon::Function answer) {
  return [=](const Request& request) mutable {
    return request.target.starts_with(target) && calls-- <= 0
               ? Problem(Unavailable("too busy", "busy"))
               : answer(request);
  };
}

TEST(LiveExportTest, WhereItCannotAskWhetherAnyMovedItLooksAgain) {
  const MovingJobs jobs({{{At(2, 2)}}, {{At(1, 1), At(2, 2)}}});
  const Outcome outcome = Ctl({"export"}, {.daemon = SilentAbout("/v1/stats", 2, jobs)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, Lines({At(2, 2), At(1, 1)}));
  const Outcome away = Ctl({"export"}, {.daemon = SilentAbout("/v1/jobs?", 1, jobs)});
  EXPECT_EQ(away.code, 5);
  EXPECT_EQ(away.err,
            "delayctl: too busy (exported 1 job, but one that moved meanwhile may be missing)\n");
}

TEST(LiveExportTest, WhereItCannotAskForPausesItSaysSo) {
  const Outcome outcome =
      Ctl({"export"}, {.daemon = SilentAbout("/v1/queues", 0, MovingJobs({{{At(1, 1)}}}))});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, Lines({At(1, 1)}));
  EXPECT_EQ(outcome.err,
            "exported 1 job; which of their queues are paused could not be asked: too busy\n");
}

TEST(LiveExportTest, QueuesThatArePausedAreToldWhenTheyAreInIt) {
  const auto with_queues = [](const Request& request) {
    const auto jobs = [](const Request&) { return Ok(JobPageToJson({.jobs = {At(1, 1)}})); };
    return request.target.starts_with("/v1/queues")
               ? Ok(protocol::QueuesToJson(
                     {{.name = "orders", .paused = true}, {.name = "others", .paused = true}}))
               : WhereNothingMoves(jobs)(request);
  };
  const Outcome outcome = Ctl({"export"}, {.daemon = with_queues});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "paused here, and a pause does not travel: orders; at the other daemon, before the "
            "import: delayctl pause QUEUE --create\n");
}

}  // namespace
}  // namespace delayd::cli

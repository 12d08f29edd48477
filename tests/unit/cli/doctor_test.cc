// What doctor tells: how the daemon is, and what it makes of its figures on queues, disk,
// connections and clocks.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "protocol/uri.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using protocol::QueueCounts;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Patient {
  std::vector<QueueCounts> queues = {};
  uint64_t waiting = 1;  // of whichever queue
  std::map<std::string, Millis> oldest = {};
  std::string metrics = {};
  std::optional<QueueCounts> later = {};  // the first of them, at the second look
  std::string metrics_later = {};         // the same
  Millis ahead{0};
  uint64_t nacked = 0;  // of whichever queue
  std::string readiness = R"({"status":"ready","version":"9.9.9"})";
  std::optional<uint32_t> attempt = 1;  // of a scheduled job; none: there is none any more
  bool is_oldest_elsewhere = false;     // the oldest of all are of queues without trouble
};

std::vector<JobView> WaitingJobs(std::optional<uint32_t> attempt) {
  std::vector<JobView> jobs;
  if (attempt) {
    jobs.push_back(SomeJob());
    jobs.front().attempt = *attempt;
  }
  return jobs;
}

// All there are, the oldest first; or of one queue.
std::vector<JobView> DueJobs(const Patient& patient, const std::string& target) {
  const bool is_of_all = target.find("queue=") == std::string::npos;
  std::vector<JobView> jobs;
  for (const auto& [queue, age] : patient.oldest) {
    if (is_of_all
            ? !patient.is_oldest_elsewhere
            : target.find("queue=" + protocol::PercentEncode(queue) + "&") != std::string::npos) {
      JobView job = SomeJob();
      job.queue = queue;
      job.state = JobState::kReady;
      job.due = WallFromMillis(kTestNow) + patient.ahead - age;
      jobs.push_back(job);
    }
  }
  std::ranges::sort(jobs, std::less<>(), &JobView::due);
  return jobs;
}

Outcome Examine(const Patient& patient, const std::vector<std::string>& more = {}) {
  int looks = 0;
  int pages = 0;
  std::vector<std::string> args = {"doctor", "-s", "http://127.0.0.1:1"};
  args.insert(args.end(), more.begin(), more.end());
  const auto daemon = [&](const Request& request) {
    const std::string& target = request.target;
    if (target == "/readyz") {
      return Ok(patient.readiness);
    }
    if (target == "/v1/stats") {
      return Ok(protocol::StatsToJson({{"scheduled", uint64_t{0}},
                                       {"ready", uint64_t{9}},
                                       {"leased", uint64_t{3}},
                                       {"nacked", patient.nacked},
                                       {"waiting", patient.waiting}}));
    }
    if (target == "/metrics") {
      // The first is of connections and the disk.
      return Ok("# HELP x\n" + (++pages == 3 ? patient.metrics_later : patient.metrics));
    }
    if (target.starts_with("/v1/queues")) {
      std::vector<QueueCounts> queues = patient.queues;
      if (++looks == 2 && patient.later) {
        queues.front() = *patient.later;
      }
      return Ok(protocol::QueuesToJson(queues));
    }
    const bool is_waiting = target.find("state=scheduled") != std::string::npos;
    return Ok(protocol::JobPageToJson(
        {.jobs = is_waiting ? WaitingJobs(patient.attempt) : DueJobs(patient, target),
         .next_cursor = ""}));
  };
  return Ctl(args, {.daemon = daemon, .daemon_ahead = patient.ahead});
}

constexpr Millis kHour = std::chrono::hours(1);

Answer Healthy(const Request& request) {
  if (request.target == "/readyz") {
    return Ok(R"({"status":"ready","version":"9.9.9"})");
  }
  if (request.target.starts_with("/v1/queues")) {
    return Ok(R"({"queues":[{"name":"orders","ready":3}]})");
  }
  if (request.target.starts_with("/v1/jobs")) {
    return Ok(protocol::JobPageToJson({.jobs = {SomeJob()}, .next_cursor = ""}));
  }
  return Ok(R"({"scheduled":1,"ready":3,"leased":0,"dead":2,"waiting":0,"damaged":0})");
}

TEST(DoctorTest, NamesEachTroubleWithItsCure) {
  const Outcome outcome =
      Ctl({"doctor", "-s", "unix:/nonexistent/d.sock", "--data-dir", "/"}, {.daemon = Healthy});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("FAIL  socket   /nonexistent/d.sock"),
                    HasSubstr("do: start the daemon"),
                    HasSubstr("warn  version  delayd is 9.9.9, delayctl is"),
                    HasSubstr("no worker asks for them"),
                    HasSubstr("disk     /: ")));
}

TEST(DoctorTest, LooksAtTheDirectoryThatIsNamedWhateverTheAddress) {
  EXPECT_THAT(
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "--data-dir", "/"}, {.daemon = Healthy}).out,
      HasSubstr("disk     /: "));
  EXPECT_THAT(Ctl({"doctor", "-s", "http://127.0.0.1:1"}, {.daemon = Healthy}).out,
              Not(HasSubstr("disk     ")));
}

TEST(DoctorTest, JudgesTheDiskByTheReserveOfTheDaemon) {
  const auto doctor = [](const std::string& reserve) {
    return Ctl({"doctor", "-s", "http://127.0.0.1:1", "--data-dir", "/"},
               {.daemon = [&](const Request& request) -> Answer {
                 return request.target == "/metrics"
                            ? Ok("# TYPE\ndelayd_disk_reserve_bytes " + reserve + "\n")
                            : Healthy(request);
               }});
  };
  const Outcome full = doctor("18000000000000000000");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.out, HasSubstr("less than storage.reserve: no new jobs are taken"));
  EXPECT_THAT(doctor("0").out, Not(HasSubstr("FAIL")));
}

// Only what the daemon tells of itself is answered then.
TEST(DoctorTest, NamesADiskThatHangs) {
  const auto doctor = [](const std::string& seconds) {
    return Ctl({"doctor", "-s", "http://127.0.0.1:1"},
               {.daemon = [&](const Request& request) -> Answer {
                 if (request.target == "/v1/stats") {
                   return Unavailable("no answer within 5s");
                 }
                 return request.target == "/metrics"
                            ? Ok("# TYPE\ndelayd_commit_running_seconds " + seconds + "\n")
                            : Healthy(request);
               }});
  };
  EXPECT_THAT(doctor("7.25").out,
              HasSubstr("no answer within 5s; the disk hangs: a commit has taken 7s so far"));
  EXPECT_THAT(doctor("0").out, Not(HasSubstr("hangs")));
}

TEST(DoctorTest, PassesOverWarnings) {
  const Outcome outcome =
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "-o", "jsonl"}, {.daemon = Healthy});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr(R"({"check":"version","result":"warn")"));
}

TEST(DoctorTest, ItsJsonIsOneDocument) {
  const std::string document =
      Ctl({"doctor", "-s", "http://127.0.0.1:1", "-o", "json"}, {.daemon = Healthy}).out;
  EXPECT_THAT(document, StartsWith(R"({"checks":[{"check":)"));
  EXPECT_THAT(document, EndsWith("}]}\n"));
  EXPECT_EQ(std::ranges::count(document, '\n'), 1);
}

// 503, with the reasons.
Answer OutOfRoom(const Request& request) {
  Answer answer = Healthy(request);
  if (request.target == "/readyz" && answer.ok()) {
    answer->status = 503;
    answer->body =
        R"({"status":"not ready","version":"9.9.9","reasons":[{"code":"disk_full","detail":"only 3 MiB are left; make room"}]})";
  }
  return answer;
}

TEST(DoctorTest, ADaemonThatIsNotReadyIsShownWithItsReasons) {
  const Outcome status = Ctl({"status"}, {.daemon = OutOfRoom});
  EXPECT_EQ(status.code, 5);
  EXPECT_THAT(status.out, HasSubstr("not ready"));
  EXPECT_THAT(status.out, HasSubstr("disk_full: only 3 MiB are left; make room"));
  EXPECT_THAT(status.out, HasSubstr("3 ready")) << "what it holds is told all the same";
  EXPECT_THAT(status.err, HasSubstr("make room"));
  EXPECT_THAT(Ctl({"status", "-o", "json"}, {.daemon = OutOfRoom}).out,
              HasSubstr(R"("why":"disk_full: only 3 MiB are left; make room")"));
  const Outcome doctor = Ctl({"doctor", "-s", "http://127.0.0.1:1"}, {.daemon = OutOfRoom});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("FAIL  daemon   answers: not ready; disk_full: only 3 MiB"));
}

TEST(DoctorTest, FailsWithoutADaemon) {
  const Outcome outcome = Ctl(
      {"doctor", "-s", "http://127.0.0.1:1"},
      {.daemon = [](const Request&) -> Answer { return Unavailable("nobody answers; start it"); }});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("FAIL  daemon   nobody answers; start it"));
}

// A worker of another queue was enough for "ok".
TEST(DoctorTest, AQueueWithoutAWorkerIsNamedThoughOthersHaveOne) {
  const std::string out =
      Examine({.queues = {{.name = "mails", .leased = 3}, {.name = "orders", .ready = 500}},
               .oldest = {{"orders", kHour}}})
          .out;
  EXPECT_THAT(out, HasSubstr("jobs     0 scheduled, 9 ready, 3 leased, 0 dead\n"));
  EXPECT_THAT(out,
              HasSubstr("warn  queues   queue orders has 500 jobs due, the oldest for 1h, and no "
                        "worker asks for them\n"
                        "               do: start a worker: delayctl work --queue orders"));
  EXPECT_THAT(out, Not(HasSubstr("queue mails")));
}

TEST(DoctorTest, AForgottenPauseIsNamedThoughWorkersWait) {
  EXPECT_THAT(Examine({.queues = {{.name = "orders", .ready = 1, .paused = true}},
                       .oldest = {{"orders", kHour}}})
                  .out,
              AllOf(HasSubstr("queue orders has 1 job due, the oldest for 1h, and is paused\n"),
                    HasSubstr("do: delayctl resume orders\n")));
  EXPECT_THAT(Examine({.queues = {{.name = "orders", .paused = true}}}).out,
              Not(HasSubstr("queues")))
      << "nothing is due";
  EXPECT_THAT(Examine({.queues = {{.name = "q", .ready = 1, .paused = true, .pause_left = kHour}},
                       .oldest = {{"q", kHour}}})
                  .out,
              HasSubstr("and is paused for another 1h\n"));
}

TEST(DoctorTest, ACureMayBeCopiedIntoAShell) {
  EXPECT_THAT(Examine({.queues = {{.name = "a;echo$(id)", .ready = 1, .paused = true},
                                  {.name = "b;c", .ready = 1}},
                       .waiting = 0,
                       .oldest = {{"a;echo$(id)", kHour}, {"b;c", kHour}}})
                  .out,
              AllOf(HasSubstr("do: delayctl resume 'a;echo$(id)'\n"),
                    HasSubstr("delayctl work --queue 'b;c' --exec")));
}

TEST(DoctorTest, AQueueThatIsQuickOrCappedByItsRateIsNoTrouble) {
  const QueueCounts quick = {.name = "q", .ready = 5, .acked = 7};
  const auto told = [](const Patient& patient) { return Examine(patient).out; };
  EXPECT_THAT(told({.queues = {quick}, .oldest = {{"q", kHour}}}), HasSubstr("no worker asks"));
  EXPECT_THAT(told({.queues = {quick},
                    .oldest = {{"q", kHour}},
                    .later = QueueCounts{.name = "q", .ready = 5, .acked = 8}}),
              Not(HasSubstr("queues")));
  EXPECT_THAT(told({.queues = {quick}, .oldest = {{"q", Millis(2000)}}}), Not(HasSubstr("queues")))
      << "a worker that polls comes by sooner";
  EXPECT_THAT(told({.queues = {quick}, .waiting = 0, .oldest = {{"q", Millis(0)}}}),
              HasSubstr("no worker asks"))
      << "nobody asks for anything";
  const QueueCounts rated = {.name = "q", .ready = 5, .rate = "1/m", .burst = 1};
  EXPECT_THAT(told({.queues = {rated}, .oldest = {{"q", kHour}}}), Not(HasSubstr("queues")));
  EXPECT_THAT(told({.queues = {rated}, .waiting = 0, .oldest = {{"q", kHour}}}),
              HasSubstr("no worker asks"));
}

std::string HandedOut(const std::string& queue, int jobs) {
  return "delayd_queue_handed_out_total{queue=\"" + queue + "\"} " + std::to_string(jobs) + "\n";
}

// Its worker was told to be missing.
TEST(DoctorTest, AQueueWhoseJobsFailIsToldFromOneWithoutAWorker) {
  const QueueCounts failing = {.name = "q", .scheduled = 4, .ready = 50, .acked = 7};
  Patient patient = {.queues = {failing},
                     .oldest = {{"q", kHour}},
                     .metrics = HandedOut("a", 1) + HandedOut("q", 1000),
                     .later = failing,
                     .metrics_later = HandedOut("a", 9) + HandedOut("q", 1312)};
  EXPECT_THAT(Examine(patient).out,
              AllOf(HasSubstr("queue q has 50 jobs due, the oldest for 1h, and its jobs fail: 312 "
                              "attempts within a second, and no ack\n"),
                    HasSubstr("do: see why: delayctl list --queue q --state scheduled -o wide\n"),
                    Not(HasSubstr("no worker"))));
  patient.later->dead = 3;
  EXPECT_THAT(Examine(patient).out,
              AllOf(HasSubstr("and no ack; 3 more are dead\n"), HasSubstr("--state dead")));
  patient.later->acked = 8;
  EXPECT_THAT(Examine(patient).out, Not(HasSubstr("queues"))) << "not all of them fail";
  patient.later = failing;
  patient.metrics_later = patient.metrics;
  EXPECT_THAT(Examine(patient).out, HasSubstr("no worker asks"));
}

// A worker that crashed with a long lease hid all that waited behind its job.
TEST(DoctorTest, AQueueOfWhichOneJobIsLeasedAndNoMoreAreTakenIsNamed) {
  Patient patient = {.queues = {{.name = "q", .ready = 40, .leased = 1}},
                     .oldest = {{"q", kHour}},
                     .metrics = HandedOut("q", 6),
                     .metrics_later = HandedOut("q", 6)};
  EXPECT_THAT(Examine(patient).out,
              AllOf(HasSubstr("queue q has 40 jobs due, the oldest for 1h, and no worker asks for "
                              "them while 1 is leased\n"),
                    HasSubstr("delayctl list --queue q --state leased; or start more workers\n")));
  patient.oldest["q"] = Millis(30'000);
  EXPECT_THAT(Examine(patient).out, Not(HasSubstr("queues"))) << "a job may take so long";
  patient.oldest["q"] = kHour;
  patient.later = QueueCounts{.name = "q", .ready = 39, .leased = 2};
  patient.metrics_later = HandedOut("q", 7);
  EXPECT_THAT(Examine(patient).out, Not(HasSubstr("queues"))) << "one more was taken";
  patient.later->leased = 1;
  EXPECT_THAT(Examine(patient).out, HasSubstr("its jobs fail: 1 attempt within a second"));
  patient.metrics = patient.metrics_later = "";
  patient.later.reset();
  EXPECT_THAT(Examine(patient).out, Not(HasSubstr("queues"))) << "it is not known";
}

// One of many queues, which the metrics do not tell by name.
TEST(DoctorTest, WhereHandOutsAreNotToldAQueueWhoseJobsMoveIsNotWithoutAWorker) {
  const QueueCounts before = {.name = "q", .ready = 50};
  const auto told = [&](const QueueCounts& later) {
    return Examine({.queues = {before}, .oldest = {{"q", kHour}}, .later = later}).out;
  };
  EXPECT_THAT(told({.name = "q", .ready = 51}), HasSubstr("no worker asks"));
  EXPECT_THAT(told({.name = "q", .scheduled = 1, .ready = 49}), Not(HasSubstr("queues")));
  EXPECT_THAT(told({.name = "q", .ready = 50, .dead = 1}), Not(HasSubstr("queues")));
}

// None of its jobs is due, so nothing but the counts shows it.
TEST(DoctorTest, AQueueWhoseJobsAllWaitForAnotherAttemptIsNamed) {
  const auto told =
      [](const QueueCounts& queue, int handed_out, std::optional<uint32_t> attempt = 1) {
        return Examine({.queues = {queue},
                        .metrics = HandedOut("q", handed_out),
                        .nacked = 5,
                        .attempt = attempt})
            .out;
      };
  const QueueCounts failing = {.name = "q", .scheduled = 5};
  EXPECT_THAT(told(failing, 5),
              AllOf(HasSubstr("queue q has 5 jobs waiting for another attempt, and none was acked "
                              "since the daemon started\n"),
                    HasSubstr("do: see why: delayctl list --queue q --state scheduled -o wide\n")));
  EXPECT_THAT(told(failing, 4), Not(HasSubstr("queue q"))) << "one was not tried yet";
  EXPECT_THAT(told(failing, 5, 0), Not(HasSubstr("queue q"))) << "others were tried, and are gone";
  EXPECT_THAT(told(failing, 5, std::nullopt), Not(HasSubstr("queue q"))) << "they are gone by now";
  EXPECT_THAT(told({.name = "q", .scheduled = 5, .ready = 1, .damaged = 1}, 5),
              HasSubstr("queue q has 5 jobs waiting for another attempt"));
  EXPECT_THAT(told({.name = "q", .scheduled = 5, .acked = 1}, 6), Not(HasSubstr("queue q")));
  EXPECT_THAT(told({.name = "q", .scheduled = 5, .leased = 1}, 6), Not(HasSubstr("queue q")));
  EXPECT_THAT(told({.name = "q"}, 6), Not(HasSubstr("queue q"))) << "they are dead, or cancelled";
}

TEST(DoctorTest, OfManyQueuesWhoseJobsAllWaitForAnotherAttemptTheNumberIsTold) {
  Patient patient = {.nacked = 5};
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    patient.queues.push_back({.name = name, .scheduled = 1});
    patient.metrics += HandedOut(name, 1);
    const std::string out = Examine(patient).out;
    EXPECT_EQ(out.find("more like these") != std::string::npos, name > "c") << out;
  }
  EXPECT_THAT(Examine(patient).out,
              AllOf(HasSubstr("queue c has 1 job waiting for another attempt"),
                    HasSubstr("up to 2 more like these\n")));
}

TEST(DoctorTest, DamagedJobsWaitForNoWorker) {
  const auto told = [](uint64_t damaged) {
    return Examine({.queues = {{.name = "q", .ready = 2, .damaged = damaged}},
                    .oldest = {{"q", kHour}}})
        .out;
  };
  EXPECT_THAT(told(1), HasSubstr("has 1 job due, the oldest for 1h, and no worker asks"));
  EXPECT_THAT(told(2), Not(HasSubstr("no worker asks")));
}

TEST(DoctorTest, APausedQueueWhoseLastLeasesAreAckedIsNamed) {
  const QueueCounts before = {.name = "q", .ready = 5, .leased = 1, .paused = true};
  EXPECT_THAT(Examine({.queues = {before, {.name = "r", .ready = 1}},
                       .oldest = {{"q", kHour}},
                       .later = QueueCounts{.name = "q", .ready = 5, .paused = true, .acked = 1}})
                  .out,
              HasSubstr("queue q has 5 jobs due, the oldest for 1h, and is paused\n"));
}

TEST(DoctorTest, AQueueWhoseConcurrencyIsUsedUpForLongIsNamed) {
  const QueueCounts full = {.name = "q", .ready = 4, .leased = 2, .concurrency = 2};
  EXPECT_THAT(Examine({.queues = {full}, .oldest = {{"q", kHour}}}).out,
              HasSubstr("queue q has 4 jobs due, the oldest for 1h, and as many are leased as its "
                        "concurrency allows: 2\n"));
  EXPECT_THAT(Examine({.queues = {full}, .oldest = {{"q", Millis(30'000)}}}).out,
              Not(HasSubstr("queues")));
}

TEST(DoctorTest, OfManyQueuesTheWorstThreeAreNamed) {
  Patient patient;
  for (int i = 1; i <= 5; ++i) {
    const std::string name = "q" + std::to_string(i);
    patient.queues.push_back({.name = name, .ready = 1});
    patient.oldest[name] = i * kHour;
  }
  const std::string out = Examine(patient).out;
  for (const char* worst : {"queue q5 ", "queue q4 ", "queue q3 "}) {
    EXPECT_THAT(out, HasSubstr(worst));
  }
  EXPECT_THAT(out, HasSubstr("warn  queues   2 more like these\n"));
  EXPECT_THAT(out, Not(HasSubstr("queue q2 ")));
}

TEST(DoctorTest, AnOldJobIsNotPassedOverForFullerQueues) {
  Patient patient = {.queues = {{.name = "forgotten", .ready = 1}},
                     .oldest = {{"forgotten", 72 * kHour}}};
  for (int i = 1; i <= 25; ++i) {
    const std::string name = "q" + std::to_string(i);
    patient.queues.push_back({.name = name, .ready = 100});
    patient.oldest[name] = kHour;
  }
  EXPECT_THAT(Examine(patient).out,
              AllOf(HasSubstr("warn  queues   queue forgotten has 1 job due, the oldest for 3d"),
                    HasSubstr("warn  queues   23 more like these\n")));
  patient.is_oldest_elsewhere = true;
  EXPECT_THAT(Examine(patient).out, HasSubstr("warn  queues   up to 23 more like these\n"));
}

TEST(DoctorTest, QueuesThatHaveNotWaitedForLongAreNotCountedEither) {
  Patient patient;
  for (int i = 1; i <= 30; ++i) {
    const std::string name = "q" + std::to_string(i);
    patient.queues.push_back({.name = name, .ready = 1});
    patient.oldest[name] = i == 7 ? kHour : Millis(1000);
  }
  EXPECT_THAT(Examine(patient).out, AllOf(HasSubstr("queue q7 has"), Not(HasSubstr("more like"))));
  patient.oldest["q7"] = Millis(1000);
  patient.is_oldest_elsewhere = true;
  EXPECT_THAT(Examine(patient).out, Not(HasSubstr("more like")));
}

TEST(DoctorTest, TheDiskIsTheDaemons) {
  const auto told = [](const std::string& free) {
    return Examine(
        {.metrics = "delayd_disk_free_bytes " + free + "\ndelayd_disk_reserve_bytes 268435456\n"});
  };
  EXPECT_THAT(told("62914560").out,
              HasSubstr("FAIL  disk     60 MiB free where the daemon's data lies, less than "
                        "storage.reserve: no new jobs are taken\n"));
  EXPECT_EQ(told("62914560").code, 1);
  EXPECT_THAT(told("1073741824").out, HasSubstr("warn  disk     1024 MiB free"));
  EXPECT_THAT(told("1.099511627776e+12").out, HasSubstr("ok    disk     1048576 MiB free"));
}

// Room would be of no help.
TEST(DoctorTest, OfADiskThatTakesNoWritesItTellsThat) {
  const auto told = [](const std::string& code, const std::string& metrics) {
    return Examine({.metrics = metrics,
                    .readiness = R"({"status":"not ready","version":"9.9.9","reasons":[{"code":")" +
                                 code + R"(","detail":"so it is"}]})"})
        .out;
  };
  const std::string free = "delayd_disk_free_bytes 1073741824\n";
  EXPECT_THAT(told("disk_read_only", free),
              AllOf(HasSubstr("FAIL  disk     1024 MiB free, and the disk of the daemon's data "
                              "takes no writes\n"),
                    HasSubstr("do: why: dmesg; then mount it writable"),
                    Not(HasSubstr("make room"))));
  EXPECT_THAT(told("disk_read_only", ""),
              HasSubstr("FAIL  disk     the disk of the daemon's data takes no writes\n"));
  EXPECT_THAT(told("memory_full", free), HasSubstr("make room"));
}

TEST(DoctorTest, TheDaemonsInodesAreTold) {
  const auto told = [](const std::string& files) {
    return Examine({.metrics = "delayd_disk_free_bytes 1.099511627776e+12\n"
                               "delayd_disk_free_inodes " +
                               files + "\n"});
  };
  EXPECT_THAT(told("95").out,
              HasSubstr("FAIL  disk     1048576 MiB free where the daemon's data lies, and hardly "
                        "an inode\n"));
  EXPECT_EQ(told("95").code, 1);
  EXPECT_THAT(told("1000").out, Not(HasSubstr("inode")));
}

TEST(DoctorTest, WhereAStartWouldHaveNoRoomItSaysNotToRestart) {
  const auto told = [](const std::string& free) {
    return Examine({.metrics = "delayd_disk_free_bytes " + free +
                               "\ndelayd_disk_reserve_bytes 0\n"
                               "delayd_store_wal_bytes 28000000\n"});
  };
  EXPECT_THAT(told("29048575").out,
              HasSubstr("ends the daemon; and do not restart it: a start may write 28 MiB, 27 are "
                        "left\n"));
  EXPECT_EQ(told("29048575").code, 1);
  EXPECT_THAT(told("29048576").out, Not(HasSubstr("do not restart")));
}

TEST(DoctorTest, MergesThatWaitForRoomAreTold) {
  const auto told = [](const std::string& waiting) {
    return Examine({.metrics = "delayd_store_tables_waiting " + waiting + "\n"}).out;
  };
  EXPECT_THAT(told("1"), HasSubstr("warn  store    the disk has no room to merge tables"));
  EXPECT_THAT(told("0"), Not(HasSubstr("merge tables")));
}

TEST(DoctorTest, WhileTheDaemonIsDownTheDiskIsLookedAtFromHere) {
  const auto told = [](const std::string& reason) {
    return Ctl({"doctor", "-s", "unix:/nonexistent/d.sock"},
               {.daemon = [&](const Request&) -> Answer { return Unavailable("no", reason); }})
        .out;
  };
  EXPECT_THAT(told("unreachable"),
              AllOf(HasSubstr("disk     /var/lib/delayd: "), HasSubstr(" (the usual data_dir: ")));
  EXPECT_THAT(told("busy"), Not(HasSubstr("disk")));
}

TEST(DoctorTest, ConnectionsThatAreUsedUpOrRefusedAreTold) {
  const auto told = [](const std::string& open, const std::string& refused) {
    return Examine({.metrics = "delayd_connections " + open +
                               "\ndelayd_connections_max 1000\nprocess_max_fds 2024\n"
                               "delayd_connections_refused_total " +
                               refused + "\n"})
        .out;
  };
  EXPECT_THAT(told("3", "0"), HasSubstr("ok    clients  3 of 1000 connections are in use\n"));
  EXPECT_THAT(told("3", "17"),
              HasSubstr("warn  clients  3 of 1000 connections are in use, 17 were "
                        "refused since it started\n"));
  EXPECT_THAT(told("875", "0"), HasSubstr("are in use, more are refused, over TCP at least\n"));
  EXPECT_THAT(Examine({.metrics = "delayd_connections 1\ndelayd_connections_max 20\n"
                                  "process_max_fds 120\n"})
                  .out,
              HasSubstr("since it may open 120 files only\n"));
  EXPECT_THAT(Examine({}).out, Not(HasSubstr("clients"))) << "an older daemon does not tell";
}

TEST(DoctorTest, ClocksThatDifferAreTold) {
  EXPECT_THAT(Examine({.ahead = 3 * kHour}).out,
              HasSubstr("warn  clock    the daemon's clock is 3h ahead of the one here\n"));
  EXPECT_THAT(Examine({.ahead = -3 * kHour}).out, HasSubstr("is 3h behind the one here\n"));
  EXPECT_THAT(Examine({.ahead = Millis(1500)}).out, Not(HasSubstr("the daemon's clock")));
}

}  // namespace
}  // namespace delayd::cli

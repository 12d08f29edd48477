// Who holds a job, for how long, and what is told of it.
#include "daemon/beanstalk/reservations.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/unit/daemon/beanstalk/session_fixture.h"

namespace delayd::beanstalk {
namespace {

TEST_F(BeanstalkSessionTest, P5OnlyTheReserverMayEndAReservation) {
  Send("put 0 0 10 1\r\nx\r\nreserve\r\n");
  Client* const other = server_.Connect();
  for (const char* command :
       {"delete 1", "release 1 0 0", "bury 1 0", "touch 1", "reserve-job 1", "kick-job 1"}) {
    EXPECT_EQ(server_.Send(other, std::string(command) + "\r\n"), "NOT_FOUND\r\n") << command;
  }
  EXPECT_EQ(Send("touch 1\r\ndelete 1\r\n"), "TOUCHED\r\nDELETED\r\n");
}

TEST_F(BeanstalkSessionTest, AnyConnectionMayDeleteWhatIsNotReserved) {
  Send("put 0 0 9 1\r\na\r\nput 0 9 9 1\r\nb\r\nput 0 0 9 1\r\nc\r\n");
  Send("reserve\r\nbury 1 0\r\n");
  EXPECT_EQ(server_.Send(server_.Connect(), "delete 1\r\ndelete 2\r\ndelete 3\r\n"),
            "DELETED\r\nDELETED\r\nDELETED\r\n");
}

TEST_F(BeanstalkSessionTest, WhenItsTimeIsOverAJobIsReadyForOthersAndTheHolderHasIt_NotFound) {
  Send("put 0 0 2 1\r\nx\r\nreserve\r\n");
  server_.Sleep(Millis(2001));
  EXPECT_EQ(Send("touch 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(Send("bury 1 0\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(server_.Send(server_.Connect(), "reserve\r\n"), "RESERVED 1 1\r\nx\r\n");
  EXPECT_EQ(Send("delete 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(Stats("stats", "job-timeouts"), "1");
  EXPECT_EQ(Stats("stats-job 1", "timeouts"), "1");
}

TEST_F(BeanstalkSessionTest, AfterItsTimeAJobThatIsReadyIsDeletedByWhoeverAsks) {
  Send("put 0 0 2 1\r\nx\r\nreserve\r\n");
  server_.Sleep(Millis(2000));
  EXPECT_EQ(Send("delete 1\r\ndelete 1\r\n"), "DELETED\r\nNOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, WhatADaemonThatWasNotRunHasNotTakenFromItsReserverIsDeleted) {
  Client* const other = server_.Connect();
  Send("put 0 0 2 1\r\nx\r\nput 0 0 2 1\r\ny\r\nreserve\r\nreserve\r\n");
  server_.Stall(Millis(2001));
  EXPECT_EQ(Send("delete 1\r\ndelete 1\r\ndelete-batch 2 3\r\n2 2\r\n"),
            "DELETED\r\nNOT_FOUND\r\nOK 18\r\nDELETED\nNOT_FOUND\n\r\n");
  EXPECT_EQ(server_.Send(other, "reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

// The reserve has looked for the next deadline, and that of these jobs is over.
TEST_F(BeanstalkSessionTest, AReserveBeforeADeleteDoesNotHideWhatItsReserverHasStill) {
  Send("put 0 0 2 1\r\nx\r\nput 0 0 2 1\r\ny\r\nreserve\r\nreserve\r\n");
  server_.Stall(Millis(2001));
  EXPECT_EQ(Send("reserve-with-timeout 0\r\ndelete 1\r\ndelete-batch 2 3\r\n1 2\r\n"),
            "TIMED_OUT\r\nDELETED\r\nOK 18\r\nNOT_FOUND\nDELETED\n\r\n");
}

TEST_F(BeanstalkSessionTest, OfAJobThatItHasNoLongerAReserverIsNotWarned) {
  Send("put 0 0 2 1\r\nx\r\nreserve\r\n");
  server_.Sleep(Millis(2000));
  EXPECT_EQ(server_.Send(server_.Connect(), "reserve\r\n"), "RESERVED 1 1\r\nx\r\n");
  EXPECT_EQ(Send("touch 1\r\nreserve-with-timeout 5\r\n"), "NOT_FOUND\r\n");
  server_.Sleep(Millis(5001));
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\nx\r\n") << "when the other's time was over";
  EXPECT_EQ(Send("delete 1\r\nput 0 0 2 1\r\ny\r\nreserve\r\n"),
            "DELETED\r\nINSERTED 2\r\nRESERVED 2 1\r\ny\r\n");
  EXPECT_EQ(Send("delete 2\r\nreserve-with-timeout 5\r\n"), "DELETED\r\n");
  server_.Sleep(Millis(5001));
  EXPECT_EQ(Send(""), "TIMED_OUT\r\n");
}

TEST_F(BeanstalkSessionTest, WhoReservesAJobAgainAfterItsTimeHoldsItAnew) {
  EXPECT_EQ(Send("put 0 0 2 1\r\nx\r\nreserve\r\n"), "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
  server_.Sleep(Millis(2001));
  EXPECT_EQ(Send("reserve-job 1\r\ntouch 1\r\ndelete 1\r\n"),
            "RESERVED 1 1\r\nx\r\nTOUCHED\r\nDELETED\r\n");
}

TEST_F(BeanstalkSessionTest, AJobIsNeverBuriedForTheNumberOfItsTries) {
  Send("put 0 0 1 1\r\nx\r\n");
  for (uint32_t tries = 0; tries <= limits::kMaxAttemptsDefault; ++tries) {
    EXPECT_EQ(Send("reserve\r\n"), "RESERVED 1 1\r\nx\r\n");
    server_.Sleep(Millis(1001));
  }
  EXPECT_EQ(Stats("stats-job 1", "state"), "ready");
}

TEST_F(BeanstalkSessionTest, TouchBeginsTheTimeToRunAnew) {
  Send("put 0 0 3 1\r\nx\r\nreserve\r\n");
  server_.Sleep(Millis(2500));
  EXPECT_EQ(Send("touch 1\r\n"), "TOUCHED\r\n");
  server_.Sleep(Millis(2500));
  EXPECT_EQ(Send("delete 1\r\n"), "DELETED\r\n");
}

TEST_F(BeanstalkSessionTest, AWaitingReserverIsWarnedASecondBeforeItsDeadline) {
  Send("put 0 0 3 1\r\nx\r\nreserve\r\n");
  EXPECT_EQ(Send("reserve-with-timeout 10\r\n"), "");
  server_.Sleep(Millis(1999));
  EXPECT_EQ(Send(""), "");
  server_.Sleep(Millis(2));
  EXPECT_EQ(Send(""), "DEADLINE_SOON\r\n");
  EXPECT_EQ(Send("reserve\r\n"), "DEADLINE_SOON\r\n");
  EXPECT_EQ(Send("touch 1\r\nreserve-with-timeout 0\r\n"), "TOUCHED\r\nTIMED_OUT\r\n");
  server_.Sleep(Millis(3001));
  EXPECT_EQ(Send("reserve\r\n"), "RESERVED 1 1\r\nx\r\n") << "it has run out, and is ready again";
}

TEST_F(BeanstalkSessionTest, AReadyJobGoesBeforeTheWarning) {
  Send("put 0 0 1 1\r\nx\r\nput 0 0 9 1\r\ny\r\nreserve\r\n");
  EXPECT_EQ(Send("reserve\r\nreserve\r\n"), "RESERVED 2 1\r\ny\r\nDEADLINE_SOON\r\n");
}

TEST_F(BeanstalkSessionTest, AtTheSameMomentTheWarningGoesBeforeTheTimeout) {
  Send("put 0 0 3 1\r\nx\r\nreserve\r\nreserve-with-timeout 2\r\n");
  server_.Sleep(Millis(2001));
  EXPECT_EQ(Send(""), "DEADLINE_SOON\r\n");
}

TEST_F(BeanstalkSessionTest, ReservationsEndWithTheirConnectionAndUseNoAttempt) {
  Client* const worker = server_.Connect();
  Send("put 0 0 99 1\r\na\r\nput 0 0 99 1\r\nb\r\n");
  server_.Send(worker, "reserve\r\nreserve\r\n");
  EXPECT_EQ(Stats("stats", "current-jobs-reserved"), "2");
  server_.Close(worker);
  EXPECT_EQ(Stats("stats", "current-jobs-ready"), "2");
  EXPECT_EQ(Stats("stats-job 1", "timeouts"), "0");
  EXPECT_EQ(Stats("stats-job 1", "releases"), "0");
  EXPECT_EQ(Send("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
}

TEST_F(BeanstalkSessionTest, AReserveThatAsksAgainWhileTheDaemonStopsDoesNotWait) {
  BeanstalkSession session(&server_.hub());
  const Now now{};
  session.Receive("reserve\r\n");
  const uint64_t first = session.Next(now)->tag;
  session.Answer(first, engine::Reply{.body = engine::Leased{}});
  EXPECT_EQ(session.output(), "") << "it waits on";
  session.Stop();
  const auto again = session.Next(now);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(std::get<engine::Lease>(again->command).wait, Millis(0));
  session.Answer(again->tag, engine::Reply{.body = engine::Leased{}});
  EXPECT_EQ(session.output(), "") << "a reserve without a time-out has none";
  EXPECT_TRUE(session.finished());
}

// The replies to what was asked before it are still to come.
TEST_F(BeanstalkSessionTest, AtAStopOnlyAPlainReserveGetsNoReply) {
  const auto stopped = [this](const std::string& reserve, bool half_closed) {
    BeanstalkSession session(&server_.hub());
    session.Receive("kick-job 1\r\n" + reserve + "\r\nlist-tube-used\r\n");
    const uint64_t kick = session.Next({})->tag;
    const uint64_t waits = session.Next({})->tag;
    if (half_closed) {
      session.InputEnded();
    }
    session.Stop();
    session.Answer(waits, engine::Reply{.body = engine::Leased{}});
    EXPECT_FALSE(session.finished());
    session.Answer(kick, engine::Reply{});
    EXPECT_TRUE(session.finished());
    return std::string(session.output());
  };
  EXPECT_EQ(stopped("reserve", false), "KICKED\r\n");
  EXPECT_EQ(stopped("reserve", true), "KICKED\r\nTIMED_OUT\r\n");
  EXPECT_EQ(stopped("reserve-with-timeout 9", false), "KICKED\r\nTIMED_OUT\r\n");
  EXPECT_EQ(stopped("reserve-batch 5 9", false), "KICKED\r\nTIMED_OUT\r\n");
}

// As a reserve does: a connection that only names its jobs may live for months.
TEST_F(BeanstalkSessionTest, P10AReserveJobForgetsWhatHasEnded) {
  Send("put 0 0 1 1\r\nx\r\nput 0 0 1 1\r\ny\r\nreserve-job 1\r\n");
  server_.Sleep(Millis(1001));
  Send("reserve-job 2\r\n");
  const std::vector<LeaseToken> held = client_->session.Leave();
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].job, JobId{2});
}

TEST(ReservationsTest, P10OfLeasesThatHaveEndedOnlyTheLatestAreKept) {
  Reservations reservations;
  const BootTime over = BootFromMillis(5000);
  reservations.Add({.job = JobId{1}, .sequence = 1}, BootFromMillis(1), Millis(1));
  EXPECT_EQ(reservations.SoonestEnd(BootFromMillis(1)), std::nullopt);
  reservations.Add({.job = JobId{1}, .sequence = 2}, over + Millis(1), Millis(1));
  const uint64_t last = limits::kCancelIdsMax + 2;
  for (uint64_t id = 2; id <= last; ++id) {
    reservations.Add({.job = JobId{id}}, BootFromMillis(static_cast<int64_t>(id)), Millis(1));
  }
  EXPECT_EQ(reservations.SoonestEnd(over), over + Millis(1));
  EXPECT_FALSE(reservations.Take(JobId{2}, over).has_value());
  EXPECT_TRUE(reservations.Take(JobId{3}, over)->is_over);
  EXPECT_FALSE(reservations.Touch(JobId{last}, over).has_value());
  EXPECT_TRUE(reservations.Take(JobId{last}, over)->is_over);
  const LeaseToken anew{.job = JobId{1}, .sequence = 2};
  EXPECT_EQ(reservations.TakeAll(), std::vector{anew});
}

}  // namespace
}  // namespace delayd::beanstalk

// put-batch, reserve-batch and delete-batch.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "daemon/beanstalk/session.h"
#include "tests/unit/daemon/beanstalk/session_fixture.h"

namespace delayd::beanstalk {
namespace {

class BeanstalkBatchesTest : public BeanstalkSessionTest {};

TEST_F(BeanstalkBatchesTest, P8ABatchIsAllOrNothing) {
  const std::string jobs = "0 0 1000 1 k1\r\na\r\n0 5 1000 2\r\nbb\r\n0 0 1000 1 k1\r\na\r\n";
  EXPECT_EQ(Send("put-batch 3 " + std::to_string(jobs.size()) + "\r\n" + jobs + "\r\n"),
            "OK 34\r\nINSERTED 1\r\nINSERTED 2\r\nEXISTS 1\r\n\r\n");
  const std::string wrong = "0 0 1000 1\r\na\r\n0 0 1000 1 k1\r\nOTHER\r\n";
  EXPECT_EQ(Send("put-batch 2 " + std::to_string(wrong.size()) + "\r\n" + wrong + "\r\n"),
            "EXPECTED_CRLF\r\n");
  const std::string conflict = "0 0 1000 1\r\na\r\n0 0 1000 1 k1\r\nb\r\n";
  EXPECT_EQ(Send("put-batch 2 " + std::to_string(conflict.size()) + "\r\n" + conflict + "\r\n"),
            "KEY_CONFLICT\r\n");
  EXPECT_EQ(Send("put-batch 2 5\r\nwrong\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(Stats("stats", "total-jobs"), "2");
  EXPECT_EQ(Stats("stats", "current-producers"), "1");
}

std::string DeleteBatch(size_t count, const std::string& ids) {
  return "delete-batch " + std::to_string(count) + " " + std::to_string(ids.size()) + "\r\n" + ids +
         "\r\n";
}

TEST_F(BeanstalkBatchesTest, ABatchIsReservedAndDeleted) {
  Send("put 2 0 9 1\r\na\r\nput 1 0 9 2\r\nbb\r\nput 3 0 9 1\r\nc\r\n");
  EXPECT_EQ(Send("reserve-batch 2 0\r\n"),
            "OK 35\r\nRESERVED 2 2\r\nbb\r\nRESERVED 1 1\r\na\r\n\r\n");
  EXPECT_EQ(Send("reserve-batch 5 0\r\n"), "OK 17\r\nRESERVED 3 1\r\nc\r\n\r\n");
  EXPECT_EQ(Send("reserve-batch 5 0\r\n"), "TIMED_OUT\r\n");
  EXPECT_EQ(Send(DeleteBatch(3, "1 3 2")), "OK 24\r\nDELETED\nDELETED\nDELETED\n\r\n");
  EXPECT_EQ(Stats("stats", "current-jobs-reserved"), "0");
  EXPECT_EQ(Stats("stats", "cmd-delete"), "1");
  EXPECT_EQ(Stats("stats", "cmd-reserve-with-timeout"), "3");
}

TEST_F(BeanstalkBatchesTest, AReserveBatchWaitsForItsFirstJobOnly) {
  EXPECT_EQ(Send("reserve-batch 10 5\r\nlist-tube-used\r\n"), "");
  server_.Send(server_.Connect(), "put 0 0 9 1\r\na\r\n");
  EXPECT_EQ(Send(""), "OK 17\r\nRESERVED 1 1\r\na\r\n\r\nUSING default\r\n");
  // The job it holds has 9 s: of a wait that is longer it is warned.
  EXPECT_EQ(Send("reserve-batch 10 5\r\n"), "");
  server_.Sleep(Millis(5001));
  EXPECT_EQ(Send(""), "TIMED_OUT\r\n");
  EXPECT_EQ(Send("reserve-batch 10 60\r\n"), "");
  server_.Sleep(Millis(3000));
  EXPECT_EQ(Send(""), "DEADLINE_SOON\r\n");
}

TEST_F(BeanstalkBatchesTest, P5ADeleteBatchIsManyDeletes) {
  Send("put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\nput 0 60 9 1\r\nc\r\nput 0 0 9 1\r\nd\r\n");
  Send("reserve-job 1\r\nreserve-job 4\r\nbury 4 0\r\n");
  server_.Send(server_.Connect(), "reserve-job 2\r\n");
  // Reserved here; by another; delayed; nobody's; buried; named twice.
  EXPECT_EQ(Send(DeleteBatch(7, "1 2 3 99 4 3 1") + "list-tube-used\r\n"),
            "OK 64\r\nDELETED\nNOT_FOUND\nDELETED\nNOT_FOUND\nDELETED\nNOT_FOUND\nNOT_FOUND\n\r\n"
            "USING default\r\n");
  EXPECT_EQ(Stats("stats", "current-jobs-reserved"), "1");
  EXPECT_EQ(Send(DeleteBatch(2, "1")), "BAD_FORMAT\r\n");
  EXPECT_EQ(Send(DeleteBatch(2, "1 x") + "list-tube-used\r\n"), "BAD_FORMAT\r\nUSING default\r\n");
}

TEST_F(BeanstalkBatchesTest, P1ADeleteBatchIsAnsweredWhenAllOfItIsDurable) {
  Send("put 0 0 9 1\r\na\r\nput 0 60 9 1\r\nb\r\nreserve\r\n");
  server_.HoldCommits(true);
  EXPECT_EQ(Send(DeleteBatch(2, "2 1") + "list-tube-used\r\n"), "");
  server_.HoldCommits(false);
  EXPECT_EQ(Send(""), "OK 16\r\nDELETED\nDELETED\n\r\nUSING default\r\n");
}

TEST_F(BeanstalkBatchesTest, ADeleteBatchOfWhichHalfIsUnknownHasNoReply) {
  Send("put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\n");
  for (const bool first_is_unknown : {true, false}) {
    BeanstalkSession session(&server_.hub());
    const Now now{};
    session.Receive("reserve\r\n");
    const uint64_t reserve = session.Next(now)->tag;
    JobView job;
    job.id = JobId{1};
    job.payload = "x";
    job.lease_token = LeaseToken{.job = JobId{1}};
    job.lease_ends = now.boot + Millis(1000);
    engine::Leased leased;
    leased.jobs.push_back(job);
    session.Answer(reserve, engine::Reply{.body = leased});
    session.Sent(session.output().size());
    session.Receive(DeleteBatch(2, "1 2"));
    const uint64_t half = session.Next(now)->tag;
    EXPECT_TRUE(session.has_more());
    EXPECT_EQ(session.Next(now)->tag, half);
    const engine::Reply unknown{.status = Unknown("may have happened")};
    const engine::Reply acked{.body = engine::AckedMany{.acked = 1, .lost = {}}};
    session.Answer(half, first_is_unknown ? unknown : acked);
    EXPECT_FALSE(session.finished());
    session.Answer(half, first_is_unknown ? acked : unknown);
    EXPECT_EQ(session.output(), "");
    EXPECT_TRUE(session.finished());
  }
}

std::optional<Reservations::Taken> ReservedOf(JobId id, bool is_over = false) {
  return Reservations::Taken{.token = {.job = id}, .is_over = is_over};
}

TEST(DeletionTest, AJobWhoseTimeIsOverIsDeletedByEitherWay) {
  Deletion deletion;
  for (const JobId id : {JobId{1}, JobId{2}, JobId{3}}) {
    deletion.Add(id, ReservedOf(id, true));
  }
  deletion.Add(JobId{2}, std::nullopt);  // again
  deletion.TakeCommands();
  deletion.Take({.body = engine::AckedMany{.lost = {{.job = JobId{2}}, {.job = JobId{3}}}}});
  deletion.Take({.body = engine::CancelledIds{
                     .refused = {{.id = JobId{1}}, {.id = JobId{3}}, {.id = JobId{2}}}}});
  EXPECT_EQ(deletion.TakeDeleted(), (std::vector{true, true, false, false}));
}

TEST(DeletionTest, AJobWhoseLeaseWasLostIsNotFound) {
  Deletion deletion;
  deletion.Add(JobId{1}, ReservedOf(JobId{1}));
  deletion.Add(JobId{2}, std::nullopt);
  deletion.Add(JobId{3}, ReservedOf(JobId{3}));
  EXPECT_EQ(deletion.TakeCommands().size(), 2U);
  EXPECT_FALSE(deletion.Take({.body = engine::AckedMany{.acked = 1, .lost = {{.job = JobId{3}}}}}));
  EXPECT_TRUE(deletion.Take({.body = engine::CancelledIds{}}));
  EXPECT_EQ(deletion.TakeDeleted(), (std::vector{true, true, false}));
}

TEST(DeletionTest, AHalfThatFailedIsNotMadeGoodByTheOther) {
  for (const bool failed_is_first : {true, false}) {
    Deletion deletion;
    deletion.Add(JobId{1}, ReservedOf(JobId{1}));
    deletion.Add(JobId{2}, std::nullopt);
    EXPECT_EQ(deletion.TakeCommands().size(), 2U);
    const engine::Reply failed{.status = Unavailable("the store is closed")};
    const engine::Reply cancelled{.body = engine::CancelledIds{}};
    EXPECT_FALSE(deletion.Take(failed_is_first ? failed : cancelled));
    EXPECT_TRUE(deletion.Take(failed_is_first ? cancelled : failed));
    EXPECT_EQ(deletion.status().code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace delayd::beanstalk

// The protocol, command by command, on a real engine.
#include "daemon/beanstalk/session.h"

#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/beanstalk/session_fixture.h"

#include <sys/stat.h>

namespace delayd::beanstalk {
namespace {

TEST_F(BeanstalkSessionTest, AJobIsPutReservedAndDeleted) {
  EXPECT_EQ(Send("put 0 0 10 5\r\nhello\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(Send("reserve\r\n"), "RESERVED 1 5\r\nhello\r\n");
  EXPECT_EQ(Send("delete 1\r\n"), "DELETED\r\n");
  EXPECT_EQ(Send("delete 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(Send("reserve-with-timeout 0\r\n"), "TIMED_OUT\r\n");
}

TEST_F(BeanstalkSessionTest, P1NothingIsAnsweredBeforeItIsDurable) {
  Send("put 0 0 10 1\r\na\r\nput 0 0 10 1\r\nb\r\nreserve\r\n");
  server_.HoldCommits(true);
  EXPECT_EQ(Send("put 0 0 10 1\r\nc\r\n"), "");
  EXPECT_EQ(Send("delete 1\r\n"), "");
  EXPECT_EQ(Send("delete 2\r\n"), "");
  // Nothing overtakes them, though it needs no disk.
  EXPECT_EQ(Send("use other\r\nlist-tube-used\r\n"), "");
  server_.HoldCommits(false);
  EXPECT_EQ(Send(""), "INSERTED 3\r\nDELETED\r\nDELETED\r\nUSING other\r\nUSING other\r\n");
  const auto wait_for_disk = [this](std::string_view command, std::string_view reply) {
    server_.HoldCommits(true);
    EXPECT_EQ(Send(command), "") << command;
    server_.HoldCommits(false);
    EXPECT_EQ(Send(""), reply);
  };
  Send("use default\r\nreserve\r\n");
  wait_for_disk("release 3 0 0\r\n", "RELEASED\r\n");
  Send("reserve\r\n");
  wait_for_disk("bury 3 0\r\n", "BURIED\r\n");
  wait_for_disk("kick 1\r\n", "KICKED 1\r\n");
  Send("reserve\r\nbury 3 0\r\n");
  wait_for_disk("kick-job 3\r\n", "KICKED\r\n");
}

TEST_F(BeanstalkSessionTest, P1ManyPutsInOneGoAreAnsweredInOrder) {
  std::string commands;
  std::string replies;
  for (int i = 1; i <= 500; ++i) {
    commands += "put 0 0 10 2\r\nxy\r\n";
    replies += "INSERTED " + std::to_string(i) + "\r\n";
  }
  EXPECT_EQ(Send(commands), replies);
}

TEST_F(BeanstalkSessionTest, ByteByByteIsTheSame) {
  const std::string conversation =
      "put 5 0 10 3\r\nabc\r\nreserve\r\nbury 1 7\r\nkick 9\r\nreserve\r\nrelease 1 3 0\r\nfoo\r\n"
      "peek 1\r\ndelete 1\r\n";
  std::string slow;
  for (const char byte : conversation) {
    slow += Send(std::string(1, byte));
  }
  EXPECT_EQ(slow,
            "INSERTED 1\r\nRESERVED 1 3\r\nabc\r\nBURIED\r\nKICKED 1\r\nRESERVED 1 3\r\nabc\r\n"
            "RELEASED\r\nUNKNOWN_COMMAND\r\nFOUND 1 3\r\nabc\r\nDELETED\r\n");
}

TEST_F(BeanstalkSessionTest, P2ADelayedJobComesAtItsTimeAndNotBefore) {
  EXPECT_EQ(Send("put 0 2 10 1\r\nx\r\nreserve\r\n"), "INSERTED 1\r\n");
  server_.Sleep(Millis(1999));
  EXPECT_EQ(Send(""), "");
  server_.Sleep(Millis(5));
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\nx\r\n");
}

TEST_F(BeanstalkSessionTest, TheMostUrgentJobOfTheWatchedTubesIsFirst) {
  Send("put 5 0 10 1\r\na\r\nuse b\r\nput 3 0 10 1\r\nb\r\nuse c\r\nput 1 0 10 1\r\nc\r\n");
  Send("watch b\r\n");
  EXPECT_EQ(Send("reserve\r\nreserve\r\nreserve-with-timeout 0\r\n"),
            "RESERVED 2 1\r\nb\r\nRESERVED 1 1\r\na\r\nTIMED_OUT\r\n");
}

TEST_F(BeanstalkSessionTest, AReserveHoldsUpWhatIsBehindIt) {
  EXPECT_EQ(Send("reserve-with-timeout 5\r\nlist-tube-used\r\n"), "");
  server_.Sleep(Millis(4999));
  EXPECT_EQ(Send(""), "");
  server_.Sleep(Millis(2));
  EXPECT_EQ(Send(""), "TIMED_OUT\r\nUSING default\r\n");
}

TEST_F(BeanstalkSessionTest, BehindAnAnsweredReserveThereIsMoreOnlyIfMoreCame) {
  BeanstalkSession session(&server_.hub());
  const engine::Reply none{.body = engine::Leased{}};
  session.Receive("reserve-with-timeout 0\r\n");
  const uint64_t first = session.Next({})->tag;
  EXPECT_FALSE(session.Next({}).has_value());
  EXPECT_FALSE(session.held_up());
  session.Answer(first, none);
  EXPECT_FALSE(session.has_more());

  session.Receive("reserve-with-timeout 0\r\nlist-tube-used\r\nreserve");
  const uint64_t second = session.Next({})->tag;
  EXPECT_FALSE(session.Next({}).has_value());
  EXPECT_TRUE(session.held_up());
  EXPECT_FALSE(session.has_more());
  session.Answer(second, none);
  EXPECT_FALSE(session.held_up());
  EXPECT_TRUE(session.has_more());
  EXPECT_FALSE(session.Next({}).has_value());
  EXPECT_FALSE(session.has_more());
  EXPECT_EQ(session.output(), "TIMED_OUT\r\nTIMED_OUT\r\nUSING default\r\n");
}

TEST_F(BeanstalkSessionTest, AReserveWaitsForHours) {
  EXPECT_EQ(Send("reserve\r\n"), "");
  server_.Sleep(std::chrono::hours(30));
  EXPECT_EQ(Send(""), "");
  EXPECT_EQ(Stats("stats", "current-waiting"), "1");
  EXPECT_EQ(Stats("stats-tube default", "current-waiting"), "1");
  Client* const producer = server_.Connect();
  server_.Send(producer, "put 0 0 10 1\r\nx\r\n");
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\nx\r\n");
}

TEST_F(BeanstalkSessionTest, WaitingConnectionsAreServedInTurn) {
  Client* const second = server_.Connect();
  Send("reserve\r\n");
  server_.Send(second, "reserve\r\n");
  server_.Send(server_.Connect(), "put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\n");
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(server_.Send(second, ""), "RESERVED 2 1\r\nb\r\n");
}

TEST_F(BeanstalkSessionTest, WhoWentAwayWhileWaitingGetsNoJob) {
  Client* const worker = server_.Connect();
  server_.Send(worker, "reserve\r\n");
  EXPECT_EQ(Stats("stats", "current-waiting"), "1");
  server_.Close(worker);
  EXPECT_EQ(Stats("stats", "current-waiting"), "0");
  Send("put 0 0 99 1\r\na\r\n");
  EXPECT_EQ(Stats("stats", "current-jobs-ready"), "1");
}

TEST_F(BeanstalkSessionTest, P1WhoWentAwayBeforeTheAnswerGetsNoJob) {
  Client* const worker = server_.Connect();
  server_.HoldCommits(true);
  server_.Send(worker, "put 0 0 99 1\r\na\r\nreserve\r\n");
  server_.Close(worker);
  server_.HoldCommits(false);
  server_.Settle();
  EXPECT_EQ(Stats("stats", "current-jobs-ready"), "1");
}

TEST_F(BeanstalkSessionTest, AHalfClosedConnectionIsServedToItsEnd) {
  Client* const worker = server_.Connect();
  server_.Send(worker, "put 0 0 9 1\r\na\r\nreserve\r\nreserve\r\nuse b\r\nreserve\r\n");
  server_.Receive(worker, "list-tube-used\r\ndelete 1\r\nincomplete");
  EXPECT_EQ(server_.HalfClose(worker),
            "TIMED_OUT\r\nUSING b\r\nTIMED_OUT\r\nUSING b\r\nDELETED\r\n");
  EXPECT_EQ(Stats("stats", "current-jobs-ready"), "0");
  EXPECT_EQ(Stats("stats", "current-connections"), "2");
}

TEST_F(BeanstalkSessionTest, QuitEndsTheConnectionBehindTheLastReply) {
  EXPECT_EQ(Send("put 0 0 9 1\r\na\r\nreserve\r\nquit\r\nput 0 0 9 1\r\nb\r\n"),
            "INSERTED 1\r\nRESERVED 1 1\r\na\r\n");
  EXPECT_TRUE(client_->session.finished());
  EXPECT_TRUE(client_->session.Leave().empty()) << "what it held was given back";
  EXPECT_EQ(Stats("stats", "total-jobs"), "1");
  EXPECT_EQ(Stats("stats", "current-jobs-ready"), "1");
}

TEST_F(BeanstalkSessionTest, AReleasedJobWaitsForItsDelayUnderItsNewPriority) {
  Send("put 9 0 9 1\r\na\r\nreserve\r\n");
  EXPECT_EQ(Send("release 1 4 2\r\n"), "RELEASED\r\n");
  EXPECT_EQ(Stats("stats-job 1", "state"), "delayed");
  EXPECT_EQ(Stats("stats-job 1", "pri"), "4");
  EXPECT_EQ(Stats("stats-job 1", "releases"), "1");
  server_.Sleep(Millis(2002));
  EXPECT_EQ(Send("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
}

TEST_F(BeanstalkSessionTest, ABuriedJobWaitsForAKick) {
  Send("put 9 0 9 1\r\na\r\nput 9 50 9 1\r\nb\r\nreserve\r\n");
  EXPECT_EQ(Send("bury 1 2\r\npeek-buried\r\npeek-delayed\r\npeek-ready\r\n"),
            "BURIED\r\nFOUND 1 1\r\na\r\nFOUND 2 1\r\nb\r\nNOT_FOUND\r\n");
  EXPECT_EQ(Stats("stats-job 1", "state"), "buried");
  EXPECT_EQ(Send("kick 10\r\n"), "KICKED 1\r\n") << "only the buried";
  EXPECT_EQ(Send("peek-ready\r\n"), "FOUND 1 1\r\na\r\n");
  EXPECT_EQ(Send("kick 10\r\nkick 10\r\nkick 0\r\n"), "KICKED 1\r\nKICKED 0\r\nKICKED 0\r\n");
  EXPECT_EQ(Stats("stats-job 1", "kicks"), "1");
  EXPECT_EQ(Stats("stats-job 1", "buries"), "1");
}

TEST_F(BeanstalkSessionTest, InATubeThatIsEmptyNothingIsKicked) {
  EXPECT_EQ(Send("kick 5\r\nuse never-filled\r\nkick 5\r\n"),
            "KICKED 0\r\nUSING never-filled\r\nKICKED 0\r\n");
}

TEST_F(BeanstalkSessionTest, KickJobTakesBuriedAndDelayedJobsOnly) {
  Send("put 0 0 9 1\r\na\r\nput 0 9 9 1\r\nb\r\nreserve\r\nbury 1 0\r\n");
  EXPECT_EQ(Send("kick-job 1\r\nkick-job 2\r\nkick-job 1\r\nkick-job 99\r\n"),
            "KICKED\r\nKICKED\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, ReserveJobTakesAnyJobThatIsNotReserved) {
  Send("use far\r\nput 0 0 9 1\r\na\r\nput 0 9 9 1\r\nb\r\n");
  EXPECT_EQ(Send("reserve-job 1\r\nbury 1 0\r\nreserve-job 1\r\nreserve-job 2\r\nreserve-job 2\r\n"
                 "reserve-job 77\r\ndelete 1\r\ndelete 2\r\n"),
            "RESERVED 1 1\r\na\r\nBURIED\r\nRESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\nNOT_FOUND\r\n"
            "NOT_FOUND\r\nDELETED\r\nDELETED\r\n");
}

TEST_F(BeanstalkSessionTest, APausedTubeGivesNothingUntilItsTimeIsOver) {
  Send("put 0 0 9 1\r\na\r\n");
  EXPECT_EQ(Send("pause-tube default 2\r\nreserve-with-timeout 0\r\npause-tube none 1\r\n"),
            "PAUSED\r\nTIMED_OUT\r\nNOT_FOUND\r\n");
  EXPECT_EQ(Stats("stats-tube default", "pause"), "2");
  EXPECT_EQ(Stats("stats-tube default", "cmd-pause-tube"), "1");
  EXPECT_EQ(Send("reserve\r\n"), "");
  server_.Sleep(Millis(2002));
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\na\r\n");
  Send("release 1 0 0\r\n");
  EXPECT_EQ(Send("pause-tube default 60\r\npause-tube default 0\r\nreserve\r\n"),
            "PAUSED\r\nPAUSED\r\nRESERVED 1 1\r\na\r\n");
}

// As in beanstalkd, which counts it before it looks at the name.
TEST_F(BeanstalkSessionTest, APauseOfATubeThatCannotBeIsCountedAndRefused) {
  const std::string long_name(201, 'x');
  EXPECT_EQ(Send("pause-tube -a 1\r\npause-tube a x\r\npause-tube " + long_name + " 0\r\n"),
            "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  EXPECT_EQ(Stats("stats", "cmd-pause-tube"), "2");
}

TEST_F(BeanstalkSessionTest, TubesAreUsedWatchedAndIgnored) {
  EXPECT_EQ(Send("use a\r\nwatch b\r\nwatch b\r\nignore default\r\nignore b\r\nignore zzz\r\n"
                 "list-tubes-watched\r\nlist-tube-used\r\n"),
            "USING a\r\nWATCHING 2\r\nWATCHING 2\r\nWATCHING 1\r\nNOT_IGNORED\r\nWATCHING 1\r\n"
            "OK 8\r\n---\n- b\n\r\nUSING a\r\n");
  EXPECT_EQ(Send("list-tubes\r\n"), "OK 22\r\n---\n- default\n- a\n- b\n\r\n");
  EXPECT_EQ(Send("stats-tube c\r\n"), "NOT_FOUND\r\n");
}

// Of one that has a job.
engine::QueueList PageOf(std::string name, std::string next_cursor) {
  return {.queues = {{.name = std::move(name), .ready = 1}}, .next_cursor = std::move(next_cursor)};
}

TEST_F(BeanstalkSessionTest, AListOfTubesIsGatheredPageByPage) {
  BeanstalkSession& session = client_->session;
  session.Receive("use b\r\nlist-tubes\r\nuse e\r\n");
  std::optional<SessionRequest> request = session.Next({});
  ASSERT_TRUE(request && std::holds_alternative<engine::ListQueues>(request->command));
  EXPECT_EQ(std::get<engine::ListQueues>(request->command).limit, 0U) << "a page";
  EXPECT_FALSE(session.Next({})) << "the list is of before";
  session.Answer(request->tag, {.body = PageOf("c", "0-7")});
  EXPECT_TRUE(session.has_more());
  EXPECT_GE(session.held_bytes(), session.output().size() + 50);
  request = session.Next({});
  ASSERT_TRUE(request && std::holds_alternative<engine::ListQueues>(request->command));
  EXPECT_EQ(std::get<engine::ListQueues>(request->command).cursor, "0-7");
  EXPECT_FALSE(session.Next({}));
  session.Answer(request->tag, {.body = PageOf("a", "")});
  EXPECT_FALSE(session.Next({}));
  EXPECT_EQ(session.output(), "USING b\r\nOK 26\r\n---\n- default\n- a\n- b\n- c\n\r\nUSING e\r\n");
  EXPECT_EQ(session.held_bytes(), session.output().size()) << "the list is gone";
}

std::string WatchTubes(size_t from, size_t to) {
  std::string lines;
  for (size_t i = from; i < to; ++i) {
    lines += "watch t" + std::to_string(i) + "\r\n";
  }
  return lines;
}

TEST_F(BeanstalkSessionTest, P10TubesThatAreWatchedAreBoundedAndCounted) {
  Send(WatchTubes(1, BeanstalkSession::kWatchedFree));  // with the default tube
  EXPECT_EQ(client_->session.held_bytes(), 0U) << "of a few nobody is let go of";
  Send(WatchTubes(BeanstalkSession::kWatchedFree, BeanstalkSession::kWatchedMax));
  EXPECT_GE(client_->session.held_bytes(), 10'000'000U);
  EXPECT_EQ(Send("watch more\r\nwatch t1\r\nignore t2\r\nwatch more\r\n"),
            "OUT_OF_MEMORY\r\nWATCHING 10000\r\nWATCHING 9999\r\nWATCHING 10000\r\n");
}

TEST_F(BeanstalkSessionTest, P10WhoWatchesWhatOthersWatchHoldsLittle) {
  const std::string lines = WatchTubes(0, 1000);
  const size_t names = 900 * BeanstalkSession::kNameBytes;
  Send(lines);
  EXPECT_GT(client_->session.held_bytes(), names);
  auto* const other = server_.Connect();
  server_.Send(other, lines);
  EXPECT_GT(other->session.held_bytes(), 0U);
  EXPECT_LT(other->session.held_bytes(), names / 10) << "the first one pays for the names";
  for (size_t i = 0; i < 1000; ++i) {
    Send("ignore t" + std::to_string(i) + "\r\n");
  }
  EXPECT_EQ(client_->session.held_bytes(), 0U);
  auto* const third = server_.Connect();
  server_.Send(third, lines);
  EXPECT_GT(third->session.held_bytes(), names) << "of those whose first one has gone, the next";
}

TEST_F(BeanstalkSessionTest, WrongCommandsAreRefusedInTheirOrderAndTheConnectionStays) {
  const std::string big(65536, 'b');
  EXPECT_EQ(Send("put 0 0 1 65536 junk\r\n" + big + "\r\nput 0 0 1 2 junk\r\n" +
                 "put 0 0 1 1\r\nabcfoo\r\nuse -\r\n"),
            "JOB_TOO_BIG\r\nBAD_FORMAT\r\nEXPECTED_CRLF\r\nUNKNOWN_COMMAND\r\nBAD_FORMAT\r\n");
  EXPECT_EQ(Send("list-tube-used\r\n"), "USING default\r\n");
}

TEST_F(BeanstalkSessionTest, NumbersThatDoNotFitAreRefused) {
  for (const std::string number : {"4294967296", "77777777777777777", "18446744073709551616"}) {
    for (const std::string& line : {"put " + number + " 0 1 1",
                                    "put 0 " + number + " 1 1",
                                    "put 0 0 " + number + " 1",
                                    "release 1 0 " + number,
                                    "pause-tube default " + number}) {
      EXPECT_EQ(Send(line + "\r\n"), "BAD_FORMAT\r\n") << line;
    }
  }
  EXPECT_EQ(Send("put 4294967295 4294967295 4294967295 1\r\na\r\n"), "INSERTED 1\r\n");
}

TEST_F(BeanstalkSessionTest, InDrainModeOnlyPutsAreRefused) {
  Send("put 0 0 9 1\r\na\r\n");
  server_.Ask(engine::Drain{.on = true});
  EXPECT_EQ(Send("put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nabcreserve\r\ndelete 1\r\n"),
            "DRAINING\r\nEXPECTED_CRLF\r\nRESERVED 1 1\r\na\r\nDELETED\r\n");
  EXPECT_EQ(Send("put-ms 0 0 9 1\r\na\r\nput-key 0 0 9 1 k\r\na\r\n"
                 "put-batch 1 12\r\n0 0 9 1\r\na\r\n\r\n"),
            "DRAINING\r\nDRAINING\r\nDRAINING\r\n");
  EXPECT_EQ(Stats("stats", "draining"), "true");
  server_.Ask(engine::Drain{.on = false});
  EXPECT_EQ(Send("put 0 0 9 1\r\na\r\n"), "INSERTED 2\r\n");
}

TEST_F(BeanstalkSessionTest, PutMsCountsInMilliseconds) {
  EXPECT_EQ(Send("put-ms 0 1500 2500 1\r\nx\r\nreserve\r\n"), "INSERTED 1\r\n");
  server_.Sleep(Millis(1499));
  EXPECT_EQ(Send(""), "");
  server_.Sleep(Millis(3));
  EXPECT_EQ(Send(""), "RESERVED 1 1\r\nx\r\n");
}

TEST_F(BeanstalkSessionTest, P7PutKeyIsIdempotent) {
  EXPECT_EQ(Send("put-key 0 60000 1000 1 order:1\r\nx\r\nput-key 0 60000 1000 1 order:1\r\nx\r\n"
                 "put-key 0 60000 1000 1 order:1\r\ny\r\nput-key 0 60000 1000 1 order:2\r\ny\r\n"),
            "INSERTED 1\r\nEXISTS 1\r\nKEY_CONFLICT\r\nINSERTED 2\r\n");
}

TEST_F(BeanstalkSessionTest, P4DeleteKeyIsDefinite) {
  Send("use q\r\nput-key 0 0 9000 1 k\r\nx\r\nwatch q\r\nreserve\r\n");
  EXPECT_EQ(server_.Send(server_.Connect(), "use q\r\ndelete-key k\r\n"),
            "USING q\r\nJOB_RESERVED\r\n");
  Send("release 1 0 60\r\n");
  EXPECT_EQ(Send("delete-key k\r\ndelete-key k\r\ndelete-key other\r\n"),
            "DELETED\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, AnIdThatNobodyCanHaveIsNotFound) {
  EXPECT_EQ(Send("delete 18446744073709551615\r\npeek 9007199254740992\r\n"),
            "NOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, ReservedHereIsLeasedThereAndTheOtherWayRound) {
  Send("put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\nreserve\r\n");
  const engine::Reply shown = server_.Ask(engine::Show{JobId{1}});
  EXPECT_EQ(std::get<Indirect<JobView>>(shown.body)->state, JobState::kLeased);
  EXPECT_EQ(server_.Ask(engine::Cancel{JobId{1}}).status.reason(), "leased");
  const engine::Reply leased = server_.Ask(engine::Lease{.queues = {"default"}});
  EXPECT_EQ(std::get<engine::Leased>(leased.body).jobs.size(), 1U);
  EXPECT_EQ(Stats("stats-job 2", "state"), "reserved");
  EXPECT_EQ(Send("delete 2\r\n"), "NOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, AnUnknownOutcomeIsNoReplyAndTheEndOfTheConnection) {
  BeanstalkSession session(&server_.hub());
  session.Receive("put 0 0 1 1\r\nx\r\nput 0 0 1 1\r\nx\r\n");
  const Now now{};
  const uint64_t first = session.Next(now)->tag;
  const uint64_t second = session.Next(now)->tag;
  engine::Reply unknown;
  unknown.status = Unknown("may have happened");
  session.Answer(second, unknown);
  session.Answer(first, unknown);
  EXPECT_EQ(session.output(), "");
  EXPECT_TRUE(session.finished());
}

TEST_F(BeanstalkSessionTest, WhatIsKnownBehindAnUnknownOutcomeIsNotTakenForIt) {
  for (const size_t sooner : {0U, 1U}) {
    BeanstalkSession session(&server_.hub());
    session.Receive("put 0 0 1 1\r\nx\r\npeek 1\r\n");
    const uint64_t tags[] = {session.Next({})->tag, session.Next({})->tag};
    const engine::Reply replies[] = {{.status = Unknown("may have happened")},
                                     {.status = NotFound("no such job")}};
    session.Answer(tags[sooner], replies[sooner]);
    session.Answer(tags[1 - sooner], replies[1 - sooner]);
    EXPECT_EQ(session.output(), "");
    EXPECT_TRUE(session.finished());
  }
}

TEST_F(BeanstalkSessionTest, WhatIsKeptAsHistoryIsNotFound) {
  BeanstalkSession session(&server_.hub());
  session.Receive("stats-job 1\r\npeek 1\r\n");
  JobView finished;
  finished.id = JobId{1};
  finished.state = JobState::kFinished;
  for (int i = 0; i < 2; ++i) {
    session.Answer(session.Next({})->tag, {.body = Indirect<JobView>(finished)});
  }
  EXPECT_EQ(session.output(), "NOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, AFlooderWaitsUntilItReads) {
  BeanstalkSession session(&server_.hub());
  const std::string flood(200, 'x');
  size_t rounds = 0;
  for (; session.wants_input() && rounds < 1'000'000; ++rounds) {
    session.Receive(flood + "\r\n");
    EXPECT_FALSE(session.Next({}).has_value());
  }
  EXPECT_LT(session.output().size(), 2 * BeanstalkSession::kOutputBytesMax);
  session.Sent(session.output().size());
  EXPECT_TRUE(session.wants_input());
}

TEST_F(BeanstalkSessionTest, P10FewRepliesThatMayBeLargeAreUnderWayAtATime) {
  BeanstalkSession session(&server_.hub());
  std::string commands;
  for (int i = 0; i < 300; ++i) {
    commands += "peek 1\r\n";
  }
  session.Receive(commands);
  std::vector<uint64_t> tags;
  while (const auto request = session.Next({})) {
    tags.push_back(request->tag);
  }
  ASSERT_EQ(tags.size(), BeanstalkSession::kLargeRepliesMax);
  EXPECT_TRUE(session.held_up());
  EXPECT_FALSE(session.has_more());
  engine::Reply missing;
  missing.status = NotFound("no such job");
  session.Answer(tags[1], missing);
  EXPECT_FALSE(session.Next({}).has_value()) << "it waits for the one before it";
  session.Answer(tags[0], missing);
  EXPECT_TRUE(session.Next({}).has_value());
  EXPECT_TRUE(session.Next({}).has_value());
  EXPECT_FALSE(session.Next({}).has_value());
}

TEST_F(BeanstalkSessionTest, P10RepliesThatWaitForOneBeforeThemAreBoundedAndCounted) {
  BeanstalkSession session(&server_.hub());
  session.Receive("put 0 0 9 1\r\na\r\n");
  const std::optional<SessionRequest> put = session.Next({});
  ASSERT_TRUE(put.has_value());
  std::string commands;
  for (int i = 0; i < 300; ++i) {
    commands += "reserve\r\n";
  }
  session.Receive(commands);
  const std::string payload(BeanstalkSession::kOutputBytesMax / 4, 'p');
  size_t answered = 0;
  while (const auto reserve = session.Next({})) {
    const JobId id{++answered};
    JobView job;
    job.id = id;
    job.payload = payload;
    job.lease_token = LeaseToken{id, 1, 1};
    session.Answer(reserve->tag, {.body = engine::Leased{{job}}});
  }
  EXPECT_EQ(answered, 4U);
  EXPECT_FALSE(session.has_more());
  EXPECT_FALSE(session.wants_input());
  EXPECT_GT(session.held_bytes(), answered * payload.size());
  session.Answer(put->tag, {.body = engine::EnqueuedIds{{{.id = JobId{9}}}}});
  EXPECT_GT(session.output().size(), answered * payload.size());
  EXPECT_LT(session.held_bytes(), session.output().size() + commands.size());
  session.Sent(session.output().size());
  EXPECT_TRUE(session.Next({}).has_value());
}

TEST_F(BeanstalkSessionTest, APauseOfATubeThatNeverWasFilledEndsToo) {
  EXPECT_EQ(Send("pause-tube default 0\r\n"), "PAUSED\r\n");
  EXPECT_EQ(Send("watch a\r\npause-tube a 0\r\n"), "WATCHING 2\r\nPAUSED\r\n");
  EXPECT_EQ(Send("pause-tube nobodys 0\r\n"), "NOT_FOUND\r\n");
}

TEST_F(BeanstalkSessionTest, AWebPageCannotSpeakIt) {
  const std::string commands = "put 0 0 60 5\r\nevil!\r\ndelete 1\r\n";
  for (const std::string& first :
       {"POST / HTTP/1.1\r\nHost: 127.0.0.1:11300\r\n\r\n" + commands,
        "POST /" + std::string(300, 'x') + " HTTP/1.1\r\n\r\n" + commands,
        std::string("\x16\x03\x01\0\n", 5) + commands}) {
    BeanstalkSession session(&server_.hub());
    session.SetPeer({});  // over TCP
    session.Receive(first);
    EXPECT_FALSE(session.Next({}).has_value()) << first;
    EXPECT_TRUE(session.finished()) << first;
    EXPECT_EQ(session.output().find("INSERTED"), std::string::npos);
  }
  BeanstalkSession mistaken(&server_.hub());
  mistaken.SetPeer({});
  mistaken.Receive("put 0 0 x 1\r\nuse a\r\n");
  EXPECT_FALSE(mistaken.Next({}).has_value());
  EXPECT_FALSE(mistaken.finished()) << "a verb is none of a browser's";
  EXPECT_EQ(mistaken.output(), "BAD_FORMAT\r\nUSING a\r\n");
  BeanstalkSession client(&server_.hub());
  client.SetPeer({});
  client.Receive("list-tube-used\r\nnonsense\r\n" + commands);
  EXPECT_TRUE(client.Next({}).has_value()) << "later mistakes are answered and forgiven";
}

TEST_F(BeanstalkSessionTest, AKeyIsUtf8) {
  EXPECT_EQ(Send("put-key 0 0 1000 1 M\xc3\xbcller\r\nx\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(Send("put-key 0 0 1000 1 M\xfcller\r\nx\r\n"), "BAD_FORMAT\r\n");
}

TEST_F(BeanstalkSessionTest, WhatIsSentBehindAReserveIsBounded) {
  BeanstalkSession session(&server_.hub());
  session.Receive("reserve\r\n");
  ASSERT_TRUE(session.Next({}).has_value());
  size_t bytes = 0;
  while (session.wants_input()) {
    session.Receive("stats\r\n");
    bytes += 7;
    EXPECT_FALSE(session.Next({}).has_value());
  }
  EXPECT_LE(bytes, BeanstalkSession::kWaitingInputMax + 7);
}

TEST(BeanstalkAccessTest, WhoMayNotEnqueueIsHungUpOn) {
  const auto access = Access::Create({.others = Role::kRead});
  ASSERT_TRUE(access.ok());
  Hub hub({.access = &*access});
  BeanstalkSession stranger(&hub);
  stranger.SetPeer({.known = true, .uid = 4711, .groups = {}});
  EXPECT_TRUE(stranger.finished());
  BeanstalkSession root(&hub);
  root.SetPeer({.known = true, .uid = 0, .groups = {}});
  EXPECT_FALSE(root.finished());
}

TEST(BeanstalkAccessTest, WhereOthersNeedATokenOnlyTheSocketIsOpen) {
  const test::TempDir dir;
  const std::string path = dir.Sub("tokens");
  std::ofstream(path) << "enqueue 0123456789abcdef\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto access = Access::Create({.others = Role::kEnqueue, .token_file = path});
  ASSERT_TRUE(access.ok()) << access.status().message();
  Hub hub({.access = &*access});
  BeanstalkSession tcp(&hub);
  tcp.SetPeer({});
  EXPECT_TRUE(tcp.finished());
  BeanstalkSession local(&hub);
  local.SetPeer({.known = true, .uid = 4711, .groups = {}});
  EXPECT_FALSE(local.finished());
}

TEST(BeanstalkAccessTest, JobsCountAgainstTheQuotaOfWhoIsOnTheSocketAndAdminsHaveNoLimit) {
  const auto access = Access::Create({});
  ASSERT_TRUE(access.ok());
  const auto put = [&access](uint64_t max, const Peer& peer) {
    Hub hub({.user_jobs_max = max, .access = &*access});
    BeanstalkSession session(&hub);
    session.SetPeer(peer);
    session.Receive("put 0 0 60 1\r\nx\r\n");
    return std::get<engine::Enqueue>(session.Next({})->command);
  };
  const Peer user{.known = true, .uid = 4711, .groups = {}};
  EXPECT_EQ(put(0, user).user, "");
  EXPECT_EQ(put(5, user).user, "uid:4711");
  EXPECT_EQ(put(5, user).user_jobs_max, 5U);
  EXPECT_EQ(put(5, {}).user, "tcp");
  EXPECT_EQ(put(5, {.known = true, .uid = 0, .groups = {}}).user_jobs_max, 0U);
}

}  // namespace
}  // namespace delayd::beanstalk

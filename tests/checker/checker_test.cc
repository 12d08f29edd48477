#include "tests/checker/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd::checker {
namespace {

using ::testing::IsEmpty;

// The invariants that a history breaks, each once, in order of discovery.
std::vector<std::string> Broken(const std::string& lines, const CheckOptions& options = {}) {
  History history;
  const Status parsed = ParseHistory(lines, &history);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  std::vector<std::string> names;
  for (const Violation& violation : Check(std::move(history), options).violations) {
    EXPECT_NE(violation.what, "");
    if (std::ranges::find(names, violation.invariant) == names.end()) {
      names.push_back(violation.invariant);
    }
  }
  return names;
}

std::vector<std::string> Only(const char* invariant) {
  return {invariant};
}

// Client 1 enqueues job 1, due 1000 ms after it was asked for.
const std::string kEnqueued = R"(
{"t":100,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a","delay":1000,"max_attempts":2}]}
{"t":110,"proc":1,"n":1,"phase":"ok","seq":5,"jobs":[{"id":1}]}
)";

// Worker 2 gets it at 1200 with a lease of 500 ms.
const std::string kLeased = R"(
{"t":1200,"proc":2,"n":1,"phase":"invoke","op":"lease"}
{"t":1210,"proc":2,"n":1,"phase":"ok","seq":5,"jobs":[{"id":1,"payload":"a","token":"1-1-1","attempt":1,"lease":500,"late":99}]}
)";

const std::string kAcked = R"(
{"t":1300,"proc":2,"n":2,"phase":"invoke","op":"ack","jobs":[{"id":1,"token":"1-1-1"}]}
{"t":1310,"proc":2,"n":2,"phase":"ok","seq":6}
)";

const std::string kBuried = R"(
{"t":1300,"proc":2,"n":2,"phase":"invoke","op":"bury","jobs":[{"id":1,"token":"1-1-1"}]}
{"t":1310,"proc":2,"n":2,"phase":"ok","seq":6}
)";

const std::string kDrained = R"({"t":9000,"phase":"ok","op":"final","jobs":[]})";

std::string LeaseAt(int t, const std::string& token, int attempt, const std::string& more = "") {
  const std::string at = std::to_string(t);
  return "{\"t\":" + at + ",\"proc\":3,\"n\":" + at + R"(,"phase":"invoke","op":"lease"})" +
         "{\"t\":" + std::to_string(t + 1) + ",\"proc\":3,\"n\":" + at + R"(,"phase":"ok")" + more +
         R"(,"jobs":[{"id":1,"payload":"a","token":")" + token + R"(","attempt":)" +
         std::to_string(attempt) + R"(,"lease":500,"late":0}]})";
}

TEST(CheckerTest, AGoodHistoryHasNoViolation) {
  EXPECT_THAT(Broken(kEnqueued + kLeased + kAcked + kDrained), IsEmpty());
  // A second hand-out after the lease was over, and one after a kill, are explained.
  EXPECT_THAT(Broken(kEnqueued + kLeased + LeaseAt(1800, "1-1-2", 2)), IsEmpty());
  EXPECT_THAT(Broken(kEnqueued + kLeased + R"({"t":1250,"phase":"ok","op":"kill"})" +
                     LeaseAt(1260, "1-2-1", 1)),
              IsEmpty());
}

TEST(CheckerTest, I1ALostJobIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kDrained), Only("I1"));
  EXPECT_EQ(Broken(kEnqueued + kLeased + kDrained), Only("I1"));
}

TEST(CheckerTest, I2AnEarlyHandOutIsFound) {
  EXPECT_EQ(Broken(kEnqueued + LeaseAt(1000, "1-1-1", 1)), Only("I2"));
  EXPECT_EQ(
      Broken(
          R"({"t":1,"w":500,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a","due":2000}]}
{"t":2,"w":501,"proc":1,"n":1,"phase":"ok","jobs":[{"id":1}]}
{"t":3,"w":502,"proc":1,"n":2,"phase":"invoke","op":"lease"}
{"t":4,"w":1999,"proc":1,"n":2,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-1-1","attempt":1}]})"),
      Only("I2"));
}

std::string Reschedule(int t, int n, int delay) {
  return "{\"t\":" + std::to_string(t) + ",\"proc\":1,\"n\":" + std::to_string(n) +
         R"(,"phase":"invoke","op":"reschedule","jobs":[{"id":1,"delay":)" + std::to_string(delay) +
         "}]}";
}

std::string Answer(int t, int n, const std::string& phase) {
  return "{\"t\":" + std::to_string(t) + ",\"proc\":1,\"n\":" + std::to_string(n) +
         ",\"phase\":\"" + phase + "\"}";
}

TEST(CheckerTest, I2ARescheduleThatMayHaveHappenedExplainsAnEarlyHandOut) {
  // The hand-out is seen before the answer to the reschedule, or there is none.
  EXPECT_THAT(
      Broken(kEnqueued + Reschedule(200, 2, 10) + LeaseAt(300, "1-1-1", 1) + Answer(310, 2, "ok")),
      IsEmpty());
  EXPECT_THAT(Broken(kEnqueued + Reschedule(200, 2, 10) + Answer(250, 2, "unknown") +
                     LeaseAt(300, "1-1-1", 1)),
              IsEmpty());
  // It does not explain everything.
  EXPECT_EQ(Broken(kEnqueued + Reschedule(200, 2, 500) + Answer(250, 2, "unknown") +
                   LeaseAt(600, "1-1-1", 1)),
            Only("I2"));
  EXPECT_EQ(Broken(kEnqueued + Reschedule(200, 2, 3000) + Answer(250, 2, "ok") +
                   LeaseAt(2000, "1-1-1", 1)),
            Only("I2"));
}

TEST(CheckerTest, I2OfTwoReschedulesAtOnceEitherMayCount) {
  EXPECT_THAT(Broken(kEnqueued + Reschedule(200, 2, 10) + Reschedule(201, 3, 3000) +
                     Answer(210, 3, "ok") + Answer(211, 2, "ok") + LeaseAt(300, "1-1-1", 1)),
              IsEmpty());
}

// Client 2 reads late that the job was handed out to it. What another client did with the job since
// then does not make it early.
TEST(CheckerTest, I2AHandOutMayHaveComeBeforeTheLastMove) {
  const auto leased = [](int asked, const std::string& seq, int answered = 1600) {
    return R"({"t":)" + std::to_string(asked) + R"(,"proc":2,"n":1,"phase":"invoke","op":"lease"}
{"t":)" + std::to_string(answered) +
           R"(,"proc":2,"n":1,"phase":"ok",)" + seq +
           R"("jobs":[{"id":1,"payload":"a","token":"1-1-1","attempt":1,"lease":200}]})";
  };
  const std::string moved = kEnqueued + Reschedule(1450, 2, 5000) + Answer(1460, 2, "ok");
  EXPECT_THAT(Broken(moved + leased(1200, "")), IsEmpty());
  EXPECT_EQ(Broken(moved + leased(1470, "")), Only("I2"));
  EXPECT_EQ(
      Broken(kEnqueued + Reschedule(1450, 2, 5000) +
             R"({"t":1460,"proc":1,"n":2,"phase":"ok","seq":6})" + leased(1200, R"("seq":7,)")),
      Only("I2"))
      << "it rests on a later commit";
  // What was promised before that still counts.
  EXPECT_EQ(
      Broken(kEnqueued + Reschedule(200, 2, 5000) + Answer(210, 2, "ok") + leased(205, "", 1099)),
      Only("I2"));
}

TEST(CheckerTest, I2TheWallClockMayBeSetBack) {
  const auto at = [](int asked, int answered) {
    return R"(
{"t":1,"w":500,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a","due":2000}]}
{"t":2,"w":501,"proc":1,"n":1,"phase":"ok","jobs":[{"id":1}]}
{"t":1510,"w":)" +
           std::to_string(asked) + R"(,"proc":1,"n":2,"phase":"invoke","op":"lease"}
{"t":1512,"w":)" +
           std::to_string(answered) +
           R"(,"proc":1,"n":2,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-1-1","attempt":1}]})";
  };
  EXPECT_THAT(Broken(at(2000, 1995)), IsEmpty());
  EXPECT_EQ(Broken(at(1990, 1985)), Only("I2"));
  EXPECT_EQ(Broken(at(1998, 1999)), Only("I2")) << "both readings are cut to milliseconds";
}

TEST(CheckerTest, I2TheFirstOfSeveralTriesCountsForTheDueTime) {
  const std::string tries = R"(
{"t":100,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"key":"k","payload":"a","delay":1000}]}
{"t":110,"proc":1,"n":1,"phase":"unknown"}
{"t":900,"proc":1,"n":2,"phase":"invoke","op":"enqueue","jobs":[{"key":"k","payload":"a","delay":1000}]}
)";
  EXPECT_THAT(Broken(tries + LeaseAt(1200, "1-1-1", 1)), IsEmpty());
  EXPECT_EQ(Broken(tries + LeaseAt(1000, "1-1-1", 1)), Only("I2"));
}

TEST(CheckerTest, I3ADueJobThatNobodyGotIsFound) {
  EXPECT_EQ(Broken(kEnqueued +
                   R"({"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"state":"ready"}]})"),
            Only("I3"));
}

TEST(CheckerTest, I4ALateHandOutIsFoundWhenThereIsABound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased, {.lateness_max_ms = 50}), Only("I4"));
  EXPECT_THAT(Broken(kEnqueued + kLeased, {.lateness_max_ms = 100}), IsEmpty());
}

const std::string kCancelled = R"(
{"t":500,"proc":1,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]}
{"t":510,"proc":1,"n":2,"phase":"ok","seq":7}
)";

TEST(CheckerTest, I5ACancelledJobThatIsHandedOutIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kCancelled + kLeased), Only("I5"));
  EXPECT_THAT(Broken(kEnqueued + kCancelled + kDrained), IsEmpty());
}

TEST(CheckerTest, I5TheCommitSequenceDecidesWhereTimesOverlap) {
  const std::string overlapping = R"(
{"t":1200,"proc":1,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]}
{"t":1220,"proc":1,"n":2,"phase":"ok","seq":7}
)";
  EXPECT_EQ(Broken(kEnqueued + overlapping + LeaseAt(1205, "1-1-1", 1, R"(,"seq":8)")), Only("I5"));
  EXPECT_THAT(Broken(kEnqueued + overlapping + LeaseAt(1205, "1-1-1", 1, R"(,"seq":6)")),
              IsEmpty());
}

TEST(CheckerTest, I5AnAnswerThatIsNotDefiniteIsFound) {
  const auto refused = [](const std::string& code) {
    return kEnqueued + R"({"t":500,"proc":1,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]}
{"t":510,"proc":1,"n":2,"phase":"fail","code":")" +
           code + R"("})";
  };
  EXPECT_EQ(Broken(refused("not_found")), Only("I5"));
  EXPECT_EQ(Broken(refused("internal")), Only("I5"));
  EXPECT_THAT(Broken(refused("leased")), IsEmpty());
}

// Either may be the one that ended it, whichever was sent first.
TEST(CheckerTest, I5OfTwoCancelsAtATimeOneFindsNothing) {
  for (const std::string first : {"1", "3"}) {
    const std::string second = first == "1" ? "3" : "1";
    EXPECT_THAT(Broken(kEnqueued + R"({"t":500,"proc":)" + first +
                       R"(,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]}
{"t":500,"proc":)" + second +
                       R"(,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]}
{"t":500,"proc":1,"n":2,"phase":"fail","code":"not_found"}
{"t":500,"proc":3,"n":2,"phase":"ok"})"),
                IsEmpty());
  }
}

TEST(CheckerTest, I6TwoLeasesAtATimeAreFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + LeaseAt(1400, "1-1-2", 2)), Only("I6"));
}

// The daemon extends the first lease and is killed; the client reads that answer late.
TEST(CheckerTest, I6AnExtendCountsForItsOwnLeaseOnly) {
  const std::string extend = R"(
{"t":1300,"proc":2,"n":2,"phase":"invoke","op":"extend","jobs":[{"id":1,"token":"1-1-1","lease":900}]}
{"t":1450,"proc":2,"n":2,"phase":"ok","seq":6}
)";
  const std::string killed = R"({"t":1350,"phase":"ok","op":"kill"})";
  const std::string next = LeaseAt(1400, "1-2-1", 1);
  EXPECT_THAT(Broken(kEnqueued + kLeased + extend + killed + next + LeaseAt(1950, "1-2-2", 2)),
              IsEmpty());
  EXPECT_EQ(Broken(kEnqueued + kLeased + extend + killed + next + LeaseAt(1850, "1-2-2", 2)),
            Only("I6"));
}

TEST(CheckerTest, I7ARedeliveryWithoutANewAttemptIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + LeaseAt(1800, "1-1-2", 1)), Only("I7"));
}

TEST(CheckerTest, I8AnAckedJobThatIsHandedOutIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + kAcked + LeaseAt(1800, "1-1-2", 2)), Only("I8"));
  EXPECT_EQ(Broken(kEnqueued + kLeased + kAcked +
                   R"({"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"state":"leased"}]})"),
            Only("I8"));
}

TEST(CheckerTest, I9AStaleLeaseThatIsAcceptedIsFound) {
  const std::string ack_of_the_first = R"(
{"t":1900,"proc":2,"n":2,"phase":"invoke","op":"extend","jobs":[{"id":1,"token":"1-1-1","lease":900}]}
{"t":1910,"proc":2,"n":2,"phase":"ok","seq":6}
)";
  EXPECT_EQ(Broken(kEnqueued + kLeased + LeaseAt(1800, "1-1-2", 2) + ack_of_the_first), Only("I9"));
  // And one of an earlier run of the daemon.
  EXPECT_EQ(Broken(kEnqueued + kLeased + R"({"t":1250,"phase":"ok","op":"kill"})" + kAcked),
            Only("I9"));
}

// The second hand-out is of the next run of the daemon. Client 2 reads late what the first run
// answered.
TEST(CheckerTest, I9AKillHidesWhichOfTwoHandOutsCameLater) {
  const std::string first = R"(
{"t":1200,"proc":2,"n":1,"phase":"invoke","op":"lease"}
{"t":1270,"proc":2,"n":1,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-1-1","attempt":1,"lease":500}]}
)";
  const std::string extend = R"(
{"t":1300,"proc":3,"n":7,"phase":"invoke","op":"extend","jobs":[{"id":1,"token":"1-2-1","lease":900}]}
{"t":1310,"proc":3,"n":7,"phase":"ok","seq":6}
)";
  EXPECT_THAT(Broken(kEnqueued + first + R"({"t":1210,"phase":"ok","op":"kill"})" +
                     LeaseAt(1260, "1-2-1", 1) + extend),
              IsEmpty());
}

TEST(CheckerTest, I9TheDaemonMayDieInTheMillisecondOfItsAnswer) {
  EXPECT_THAT(Broken(kEnqueued + kLeased + R"(
{"t":1300,"proc":2,"n":2,"phase":"invoke","op":"extend","jobs":[{"id":1,"token":"1-1-1","lease":900}]}
{"t":1300,"phase":"ok","op":"kill"}
{"t":1301,"proc":2,"n":2,"phase":"ok","seq":6})"),
              IsEmpty());
}

std::string Keyed(int t, const std::string& payload, int id) {
  const std::string at = std::to_string(t);
  return "{\"t\":" + at + ",\"proc\":4,\"n\":" + at +
         R"(,"phase":"invoke","op":"enqueue","jobs":[{"queue":"q","key":"k","payload":")" +
         payload + R"("}]})" + "{\"t\":" + std::to_string(t + 1) + ",\"proc\":4,\"n\":" + at +
         R"(,"phase":"ok","jobs":[{"id":)" + std::to_string(id) + "}]}";
}

TEST(CheckerTest, I10TwoJobsUnderOneKeyAreFound) {
  EXPECT_EQ(Broken(Keyed(1, "a", 1) + Keyed(5, "a", 2)), Only("I10"));
  EXPECT_EQ(Broken(Keyed(1, "a", 1) + Keyed(5, "b", 2)), Only("I10"));
  EXPECT_THAT(Broken(Keyed(1, "a", 1) + Keyed(5, "a", 1)), IsEmpty());
  const std::string cancel = R"(
{"t":3,"proc":1,"n":2,"phase":"invoke","op":"cancel","jobs":[{"queue":"q","key":"k"}]}
{"t":4,"proc":1,"n":2,"phase":"ok"}
)";
  EXPECT_THAT(Broken(Keyed(1, "a", 1) + cancel + Keyed(5, "b", 2)), IsEmpty());
  const std::string retention = R"({"t":0,"phase":"ok","op":"config","key_retention":1000})";
  EXPECT_EQ(Broken(retention + Keyed(1, "a", 1) + cancel + Keyed(5, "a", 2)), Only("I10"));
  EXPECT_THAT(Broken(retention + Keyed(1, "a", 1) + cancel + Keyed(2000, "a", 2)), IsEmpty());
}

TEST(CheckerTest, I11AJobThatNobodyEnqueuedIsFound) {
  EXPECT_EQ(Broken(kLeased), Only("I11"));
}

TEST(CheckerTest, I11AnotherPayloadIsFound) {
  EXPECT_EQ(Broken(kEnqueued + R"(
{"t":1200,"proc":2,"n":1,"phase":"invoke","op":"lease"}
{"t":1210,"proc":2,"n":1,"phase":"ok","jobs":[{"id":1,"payload":"b","token":"1-1-1","attempt":1}]})"),
            Only("I11"));
}

TEST(CheckerTest, I12HalfABatchIsFound) {
  const std::string unknown = R"(
{"t":1,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a"},{"payload":"b"}]}
{"t":2,"proc":1,"n":1,"phase":"unknown"}
)";
  const auto left = [](const std::string& jobs) {
    return R"({"t":9000,"phase":"ok","op":"final","jobs":[)" + jobs + "]}";
  };
  const std::string a = R"({"id":1,"payload":"a","state":"dead"})";
  const std::string b = R"({"id":2,"payload":"b","state":"dead"})";
  EXPECT_EQ(Broken(unknown + left(a)), Only("I12"));
  EXPECT_THAT(Broken(unknown + left(a + "," + b)), IsEmpty());
  EXPECT_THAT(Broken(unknown + left("")), IsEmpty());
}

TEST(CheckerTest, I12ARefusedBatchThatIsThereIsFound) {
  EXPECT_EQ(Broken(R"(
{"t":1,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a"}]}
{"t":2,"proc":1,"n":1,"phase":"fail","code":"key_conflict"}
{"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"payload":"a","state":"dead"}]})"),
            Only("I12"));
}

// The first try had no answer and took effect; the last comes after another job has got the key.
TEST(CheckerTest, I12ARefusedTryDoesNotUndoAnEarlierOne) {
  const auto sent = [](int n, const std::string& answer) {
    const std::string at = std::to_string(n);
    return R"({"t":)" + at + R"(,"proc":1,"n":)" + at +
           R"(,"phase":"invoke","op":"enqueue","jobs":[{"key":"k","payload":"a"}]})" + R"({"t":)" +
           at + R"(,"proc":1,"n":)" + at + "," + answer + "}";
  };
  EXPECT_THAT(
      Broken(
          sent(1, R"("phase":"unknown")") + sent(2, R"("phase":"fail","code":"key_conflict")") +
          R"({"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"payload":"a","state":"dead"}]})"),
      IsEmpty());
}

TEST(CheckerTest, I13MoreHandOutsThanAttemptsAreFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + LeaseAt(1800, "1-1-2", 2) + LeaseAt(2400, "1-1-3", 3)),
            Only("I13"));
}

// The third has an attempt that is allowed, and overlaps the second.
TEST(CheckerTest, I13OnlyAKillBetweenTwoHandOutsExplainsOneMore) {
  const std::string killed = R"(,"phase":"ok","op":"kill"})";
  const std::string second_and_third =
      R"({"t":1790,"proc":2,"n":3,"phase":"invoke","op":"lease"})" + LeaseAt(1800, "1-1-2", 2) +
      R"({"t":2400,"proc":2,"n":3,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-1-3","attempt":2,"lease":500}]})";
  const std::string dead =
      R"({"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"payload":"a","state":"dead"}]})";
  EXPECT_EQ(Broken(R"({"t":50)" + killed + kEnqueued + kLeased + second_and_third + dead),
            Only("I13"));
  EXPECT_EQ(Broken(kEnqueued + kLeased + second_and_third + R"({"t":2500)" + killed + dead),
            Only("I13"));
  EXPECT_THAT(Broken(kEnqueued + kLeased + R"({"t":1750)" + killed + LeaseAt(1800, "1-2-1", 1) +
                     LeaseAt(2400, "1-2-2", 2) + dead),
              IsEmpty());
  // One that told no attempt may have used none.
  EXPECT_THAT(Broken(kEnqueued + kLeased + R"({"t":1750)" + killed + LeaseAt(1800, "1-2-1", 0) +
                     LeaseAt(2400, "1-2-2", 1) + LeaseAt(3000, "1-2-3", 2) + dead),
              IsEmpty());
}

TEST(CheckerTest, I13ABuriedJobThatComesAgainOrVanishesIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + kBuried + LeaseAt(1800, "1-1-2", 2)), Only("I13"));
  EXPECT_EQ(Broken(kEnqueued + kLeased + kBuried + kDrained), Only("I13"));
}

std::string Disk(int t, int seq, const std::string& jobs, const std::string& faults = "") {
  return "{\"t\":" + std::to_string(t) + R"(,"phase":"ok","op":"disk","seq":)" +
         std::to_string(seq) + R"(,"jobs":[)" + jobs + R"(],"faults":[)" + faults + "]}";
}

const std::string kOnDisk = R"({"id":1,"state":"pending","payload":"a"})";
const std::string kListed =
    R"({"t":8000,"phase":"ok","op":"final","jobs":[{"id":1,"state":"scheduled","payload":"a","due":9999}]})";

TEST(CheckerTest, I14RowsThatDoNotFitEachOtherAreFound) {
  EXPECT_EQ(Broken(kEnqueued + Disk(9000, 5, kOnDisk, R"("job 1: its index row is missing")")),
            Only("I14"));
}

TEST(CheckerTest, I14AListThatIsNotWhatTheDiskHoldsIsFound) {
  const std::string dead = R"({"id":1,"state":"dead","payload":"a"})";
  EXPECT_THAT(Broken(kEnqueued + kListed + Disk(9000, 5, kOnDisk)), IsEmpty());
  EXPECT_EQ(Broken(kEnqueued + kListed + Disk(9000, 5, dead)), Only("I14"));
  EXPECT_THAT(Broken(kEnqueued + kListed + Disk(9000, 5, "")), ::testing::Contains("I14"));
  const std::string nothing_listed = R"({"t":8000,"phase":"ok","op":"final","jobs":[]})";
  EXPECT_THAT(Broken(kEnqueued + nothing_listed + Disk(9000, 5, kOnDisk)),
              ::testing::Contains("I14"));
  // Somebody has asked for something in between.
  EXPECT_THAT(Broken(kEnqueued + kListed + Reschedule(8500, 7, 10) + Disk(9000, 5, dead)),
              IsEmpty());
}

TEST(CheckerTest, I17AnAnswerThatRestsOnWhatIsNotOnDiskIsFound) {
  EXPECT_THAT(Broken(kEnqueued + Disk(9000, 5, kOnDisk)), IsEmpty());
  EXPECT_EQ(Broken(kEnqueued + Disk(9000, 4, kOnDisk)), Only("I17"));
  EXPECT_EQ(Broken(kEnqueued + Disk(9000, 5, "")), Only("I17"));
  EXPECT_THAT(Broken(kEnqueued + kLeased + kAcked + Disk(9000, 6, "")), IsEmpty());
  EXPECT_EQ(Broken(kEnqueued + kLeased + kAcked + Disk(9000, 6, kOnDisk)), Only("I17"));
  EXPECT_EQ(Broken(kEnqueued + kCancelled + Disk(9000, 7, kOnDisk)), Only("I17"));
  // What was asked for and not answered may be there or not.
  const std::string cancel =
      R"({"t":500,"proc":1,"n":2,"phase":"invoke","op":"cancel","jobs":[{"id":1}]})";
  EXPECT_THAT(Broken(kEnqueued + cancel + Disk(9000, 7, kOnDisk)), IsEmpty());
  EXPECT_THAT(Broken(kEnqueued + cancel + Disk(9000, 7, "")), IsEmpty());
}

TEST(CheckerTest, I17ABuriedJobIsAmongTheDeadOnDisk) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + kBuried + Disk(9000, 6, kOnDisk)), Only("I17"));
  EXPECT_THAT(Broken(kEnqueued + kLeased + kBuried +
                     Disk(9000, 6, R"({"id":1,"state":"dead","payload":"a"})")),
              IsEmpty());
}

std::string Kick(int t, const std::string& phase = "ok") {
  return "{\"t\":" + std::to_string(t) + R"(,"proc":4,"n":)" + std::to_string(t) +
         R"(,"phase":"invoke","op":"kick","jobs":[{"id":1,"delay":0}]}{"t":)" +
         std::to_string(t + 5) + R"(,"proc":4,"n":)" + std::to_string(t) + R"(,"phase":")" + phase +
         R"("})";
}

TEST(CheckerTest, AKickedJobIsNoDeadOne) {
  const std::string buried = kEnqueued + kLeased + kBuried;
  const std::string kicked = buried + Kick(1400);
  EXPECT_THAT(Broken(kicked + LeaseAt(1450, "1-1-2", 1) + LeaseAt(2000, "1-1-3", 2)), IsEmpty())
      << "its attempts begin anew";
  EXPECT_THAT(Broken(kicked + Disk(9000, 6, kOnDisk)), IsEmpty());
  EXPECT_THAT(Broken(buried + Kick(1400, "unknown") + Disk(9000, 6, kOnDisk)), IsEmpty());
  EXPECT_EQ(Broken(kicked + kDrained), Only("I1"));
  EXPECT_EQ(Broken(kicked + LeaseAt(1450, "1-1-2", 1) + LeaseAt(2000, "1-1-3", 1)), Only("I7"));
  EXPECT_EQ(Broken(kicked + LeaseAt(1450, "1-1-2", 3)), Only("I13"));
  EXPECT_EQ(Broken(kEnqueued + kLeased + kAcked + Kick(1400)), Only("I8"));
  EXPECT_EQ(Broken(kEnqueued + kCancelled + Kick(1400)), Only("I5"));
  EXPECT_THAT(Broken(kEnqueued + kCancelled + Kick(1400, "fail")), IsEmpty());
}

// After a kick the first attempt repeats none of those before, so a kill explains none more.
TEST(CheckerTest, I13AKillBeforeAKickExplainsNoHandOutBehindIt) {
  const std::string begun = kEnqueued + kLeased + kBuried +
                            R"({"t":1350,"phase":"ok","op":"kill"})" + Kick(1400) +
                            LeaseAt(1450, "1-2-1", 1);
  const std::string second_to_fourth = R"(
{"t":2000,"proc":2,"n":3,"phase":"invoke","op":"lease"}
{"t":2001,"proc":5,"n":1,"phase":"invoke","op":"lease"}
)" + LeaseAt(2010, "1-2-2", 2) + R"(
{"t":2600,"proc":2,"n":3,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-2-3","attempt":2,"lease":500}]}
{"t":3200,"proc":5,"n":1,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-2-4","attempt":2,"lease":500}]}
{"t":9000,"phase":"ok","op":"final","jobs":[{"id":1,"payload":"a","state":"dead"}]}
)";
  EXPECT_EQ(Broken(begun + second_to_fourth), Only("I13"));
}

TEST(CheckerTest, AKickMovesTheDueTime) {
  EXPECT_EQ(Broken(kEnqueued + LeaseAt(600, "1-1-2", 1)), Only("I2"));
  EXPECT_THAT(Broken(kEnqueued + Kick(500) + LeaseAt(600, "1-1-2", 1)), IsEmpty());
  EXPECT_EQ(Broken(kEnqueued + Kick(500) + Reschedule(550, 9, 400) + Answer(560, 9, "ok") +
                   LeaseAt(600, "1-1-2", 1)),
            Only("I2"));
}

// The kick is sent at 1100 and takes effect at 1750, when the job has died; or the hand-out of
// before is read after the answer to the kick.
TEST(CheckerTest, I7AKickMayBeginTheAttemptsAnewUntilItIsAnswered) {
  const std::string sent =
      R"({"t":1150,"proc":4,"n":1,"phase":"invoke","op":"kick","jobs":[{"id":1,"delay":0}]})";
  const std::string answered = R"({"t":1760,"proc":4,"n":1,"phase":"ok"})";
  const std::string before = kEnqueued + kLeased + sent + LeaseAt(1711, "1-1-2", 2);
  EXPECT_THAT(Broken(before + answered + LeaseAt(2300, "1-1-3", 1)), IsEmpty());
  EXPECT_EQ(Broken(before + answered + LeaseAt(2300, "1-1-3", 1) + LeaseAt(2900, "1-1-4", 1)),
            Only("I7"));
  const std::string read_late = R"(
{"t":1711,"proc":5,"n":1,"phase":"invoke","op":"lease"}
{"t":1800,"proc":5,"n":1,"phase":"ok","jobs":[{"id":1,"payload":"a","token":"1-1-2","attempt":2,"lease":20}]}
)";
  EXPECT_THAT(Broken(kEnqueued + kLeased + Kick(1750) + read_late + LeaseAt(2300, "1-1-3", 1)),
              IsEmpty());
}

TEST(CheckerTest, I17AKickedJobIsNotAmongTheDeadOnDisk) {
  const std::string enqueued = R"(
{"t":100,"proc":1,"n":1,"phase":"invoke","op":"enqueue","jobs":[{"payload":"a","delay":1000}]}
{"t":110,"proc":1,"n":1,"phase":"ok","jobs":[{"id":1}]}
)";
  const std::string dead = R"({"id":1,"state":"dead","payload":"a"})";
  EXPECT_EQ(Broken(enqueued + Kick(1400) + Disk(9000, 6, dead)), Only("I17"));
  EXPECT_THAT(Broken(enqueued + Kick(1400) + Disk(9000, 6, kOnDisk)), IsEmpty());
  EXPECT_THAT(Broken(enqueued + Kick(1400, "unknown") + Disk(9000, 6, dead)), IsEmpty());
  // Once it was sent, a bury may be the last that happened.
  const std::string bury = R"({"t":1402,"proc":2,"n":2,"phase":"invoke","op":"bury",)"
                           R"("jobs":[{"id":1,"token":"1-1-1"}]})";
  EXPECT_THAT(Broken(enqueued + kLeased + Kick(1400) + bury + Disk(9000, 6, dead)), IsEmpty());
  const std::string answered = R"({"t":1404,"proc":2,"n":2,"phase":"ok"})";
  EXPECT_THAT(Broken(enqueued + kLeased + Kick(1400) + bury + answered + Disk(9000, 6, kOnDisk)),
              IsEmpty());
}

// As a beanstalk server hands out: no attempt is told, and the end of the connection uses none.
std::string ReserveAt(int t, const std::string& token, int until) {
  const std::string at = std::to_string(t);
  return "{\"t\":" + at + R"(,"proc":4,"n":)" + at + R"(,"phase":"invoke","op":"lease"})" +
         "{\"t\":" + std::to_string(until) + R"(,"proc":4,"n":)" + at +
         R"(,"phase":"ok","jobs":[{"id":1,"payload":"a","token":")" + token + R"(","lease":500}]})";
}

std::string Sent(int t, const std::string& op, const std::string& token) {
  return "{\"t\":" + std::to_string(t) + R"(,"proc":4,"n":)" + std::to_string(t) +
         R"(,"phase":"invoke","op":")" + op + R"(","jobs":[{"id":1,"token":")" + token + R"("}]})";
}

std::string Taken(int t, int request) {
  return "{\"t\":" + std::to_string(t) + R"(,"proc":4,"n":)" + std::to_string(request) +
         R"(,"phase":"ok"})";
}

TEST(CheckerTest, AHandOutThatTellsNoAttemptIsHeldAgainstTheRest) {
  const std::string reserved = kEnqueued + ReserveAt(1200, "b-1", 1210);
  EXPECT_THAT(Broken(reserved + Sent(1300, "nack", "b-1") + LeaseAt(1301, "1-1-2", 1)), IsEmpty());
  EXPECT_EQ(Broken(reserved + LeaseAt(1301, "1-1-2", 1)), Only("I6"));
  EXPECT_EQ(Broken(reserved + ReserveAt(1301, "b-1", 1302)), Only("I16"));
  EXPECT_EQ(
      Broken(reserved + LeaseAt(1801, "1-1-2", 1) + Sent(1900, "bury", "b-1") + Taken(1910, 1900)),
      Only("I9"));
}

TEST(CheckerTest, HandOutsThatTellNoAttemptUseNone) {
  std::string history = kEnqueued;
  for (int i = 0; i < 5; ++i) {
    const std::string token = "b-" + std::to_string(i);
    const int t = 1200 + i * 100;
    history += ReserveAt(t, token, t + 10) + Sent(t + 20, "nack", token);
  }
  history += LeaseAt(2000, "1-1-2", 1) + Sent(2100, "ack", "1-1-2") + Taken(2110, 2100);
  EXPECT_THAT(Broken(history + kDrained), IsEmpty());
}

// Which of them has the job now nobody can say.
TEST(CheckerTest, OfTwoHandOutsThatOverlapAnyMayBeTheLast) {
  const std::string overlap = kEnqueued + ReserveAt(1200, "b-1", 1810) + LeaseAt(1805, "1-1-2", 1);
  EXPECT_THAT(Broken(overlap + Sent(1900, "bury", "b-1") + Taken(1910, 1900)), IsEmpty());
  EXPECT_THAT(Broken(overlap + LeaseAt(1850, "1-1-3", 2)), IsEmpty());
  EXPECT_EQ(Broken(overlap + LeaseAt(1850, "1-1-3", 2) + ReserveAt(1900, "b-2", 1910)), Only("I6"));
}

TEST(CheckerTest, I15AReadThatDoesNotShowWhatWasAnsweredIsFound) {
  const auto show = [](int t, const std::string& answer) {
    return "{\"t\":" + std::to_string(t) +
           R"(,"proc":4,"n":1,"phase":"invoke","op":"show","jobs":[{"id":1}]}{"t":)" +
           std::to_string(t + 1) + R"(,"proc":4,"n":1,)" + answer + "}";
  };
  const std::string missing = R"("phase":"fail","code":"not_found")";
  const std::string ready = R"("phase":"ok","jobs":[{"id":1,"payload":"a","state":"ready"}])";
  EXPECT_EQ(Broken(kEnqueued + show(200, missing)), Only("I15"));
  EXPECT_THAT(Broken(kEnqueued + show(105, missing)), IsEmpty()) << "they overlap";
  EXPECT_EQ(Broken(kEnqueued + kLeased + kAcked + show(1400, ready)), Only("I15"));
  EXPECT_THAT(Broken(kEnqueued + kLeased + kAcked + show(1305, ready)), IsEmpty());
  EXPECT_THAT(Broken(kEnqueued + kLeased + kAcked + show(1400, missing)), IsEmpty());
}

TEST(CheckerTest, I16TheSameLeaseTwiceIsFound) {
  EXPECT_EQ(Broken(kEnqueued + kLeased + LeaseAt(1800, "1-1-1", 1)), Only("I16"));
}

TEST(CheckerTest, AnUnreadableLineIsNamed) {
  History history;
  EXPECT_THAT(ParseHistory("{\"t\":1}\n{\"tt\":1}", &history).message(),
              ::testing::HasSubstr("line 2"));
}

TEST(CheckerTest, SeveralFilesAreOneHistoryWhateverTheirOrder) {
  EXPECT_THAT(Broken(kAcked + kLeased + kEnqueued + kDrained), IsEmpty());
}

}  // namespace
}  // namespace delayd::checker

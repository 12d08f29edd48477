#include "protocol/store_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StoreJsonTest, VerifyReadsBack) {
  const VerifyResult result{.rows = 1,
                            .pending = 2,
                            .dead = 3,
                            .disagreements = 4,
                            .findings = {{"index", "job 4: \"quoted\"", true}, {"big", "x", false}},
                            .repaired = 4,
                            .notes = {"a", "b"},
                            .elapsed_ms = 9};
  EXPECT_EQ(
      VerifyResultToJson(result),
      R"({"whole":true,"rows":1,"pending":2,"dead":3,"disagreements":4,"repaired":4,"findings":)"
      R"([{"table":"index","what":"job 4: \"quoted\"","repairable":true},)"
      R"({"table":"big","what":"x","repairable":false}],"notes":["a","b"],"elapsed_ms":9})");
  const auto read = ParseVerifyResult(VerifyResultToJson(result));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(VerifyResultToJson(*read), VerifyResultToJson(result));
  EXPECT_TRUE(read->whole());
  EXPECT_EQ(read->findings[0].what, "job 4: \"quoted\"");
  EXPECT_TRUE(read->findings[0].repairable);
  EXPECT_EQ(VerifyResultToJson({.disagreements = 1}).find(R"({"whole":false)"), 0U);
}

TEST(StoreJsonTest, WhatIsNoListIsNamed) {
  for (const char* notes : {R"("[\"a string that looks like one\"]")", "1", "{}"}) {
    const std::string json =
        R"({"whole":true,"disagreements":0,"notes":)" + std::string(notes) + "}";
    EXPECT_THAT(ParseVerifyResult(json).status().message(), HasSubstr("member 'notes': is "));
  }
}

TEST(StoreJsonTest, RecoverReadsBack) {
  const RecoverResult result{.damaged = true,
                             .changed = true,
                             .opens = false,
                             .unread = true,
                             .still_wrong = 8,
                             .lost_batches = 7,
                             .lists_complete = false,
                             .lists_capped = true,
                             .gone = {JobId{1}, JobId{2}},
                             .older = {JobId{3}},
                             .revived = {JobId{4}},
                             .notes = {"note"}};
  EXPECT_EQ(
      RecoverResultToJson(result),
      R"({"damaged":true,"changed":true,"opens":false,"unread":true,"still_wrong":8,)"
      R"("lost_batches":7,"lists_complete":false,"lists_capped":true,"gone":[1,2],"older":[3],)"
      R"("revived":[4],"notes":["note"]})");
  const auto read = ParseRecoverResult(RecoverResultToJson(result));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(RecoverResultToJson(*read), RecoverResultToJson(result));
  EXPECT_THAT(read->gone, ElementsAre(JobId{1}, JobId{2}));
}

TEST(StoreJsonTest, ARecoveredStoreIsWholeWhenItCanBeUsed) {
  EXPECT_TRUE((RecoverResult{}).whole());
  EXPECT_TRUE((RecoverResult{.damaged = true, .changed = true}).whole());
  EXPECT_FALSE((RecoverResult{.damaged = true}).whole());
  EXPECT_FALSE((RecoverResult{.opens = false}).whole());
  EXPECT_FALSE((RecoverResult{.unread = true}).whole());
}

TEST(StoreJsonTest, BackupTakesAnAbsolutePathOnly) {
  EXPECT_EQ(ParseBackupRequest(BackupRequestToJson({.dir = "/b"}))->dir, "/b");
  for (const char* bad : {R"({"dir":"b"})", R"({"dir":""})", "{}", R"({"dir":"/b","x":1})", "[]"}) {
    EXPECT_EQ(ParseBackupRequest(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  const BackupResult result{.dir = "/b", .bytes = 5, .elapsed_ms = 6};
  EXPECT_EQ(BackupResultToJson(result), R"({"dir":"/b","bytes":5,"elapsed_ms":6})");
  EXPECT_EQ(BackupResultToJson(*ParseBackupResult(BackupResultToJson(result))),
            BackupResultToJson(result));
}

TEST(StoreJsonTest, LinesReadBack) {
  const auto progress =
      ParseStoreLine(StoreLineToJson(StoreProgress{.table = "timers", .rows = 1, .rows_total = 2}));
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(std::get<StoreProgress>(*progress).rows_total, 2U);
  EXPECT_TRUE(
      std::holds_alternative<VerifyResult>(*ParseStoreLine(StoreLineToJson(VerifyResult{}))));
  EXPECT_TRUE(
      std::holds_alternative<RecoverResult>(*ParseStoreLine(StoreLineToJson(RecoverResult{}))));
  // Also with a reason that this program has never heard of.
  const auto problem =
      ParseStoreLine(StoreLineToJson(FailedPrecondition("in use", "some_new_reason")));
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(std::get<Status>(*problem).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::get<Status>(*problem).reason(), "some_new_reason");
  EXPECT_THAT(ParseStoreLine("{}").status().message(), HasSubstr("progress"));
  EXPECT_FALSE(ParseStoreLine("panic: x").ok());
}

}  // namespace
}  // namespace delayd::protocol

#include "base/job.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(JobStateTest, NamesReadBack) {
  for (const JobState state : {JobState::kScheduled,
                               JobState::kReady,
                               JobState::kLeased,
                               JobState::kDead,
                               JobState::kFinished}) {
    EXPECT_EQ(ParseJobState(JobStateName(state)), state);
  }
  EXPECT_FALSE(ParseJobState("Ready").has_value());
}

TEST(LeaseTokenTest, TextReadsBack) {
  const LeaseToken token{.job = JobId{4711}, .epoch = 0xab, .sequence = UINT64_MAX};
  EXPECT_EQ(FormatLeaseToken(token), "4711-ab-ffffffffffffffff");
  EXPECT_EQ(*ParseLeaseToken(FormatLeaseToken(token)), token);
}

TEST(LeaseTokenTest, AnythingElseIsRefused) {
  for (const char* text : {"",
                           "-",
                           "--",
                           "1",
                           "1-2",
                           "1-2-",
                           "-2-3",
                           "1-2-3-4",
                           "1-2-g",
                           "x-2-3",
                           "1- 2-3",
                           "99999999999999999999-1-1"}) {
    EXPECT_EQ(ParseLeaseToken(text).status().reason(), "invalid_lease_token") << text;
  }
}

TEST(QueueNameTest, TakesWhatBeanstalkClientsUse) {
  for (const char* name : {"default", "A-b+c/d;e.f$g_h(i)", "0"}) {
    EXPECT_TRUE(ValidateQueueName(name).ok()) << name;
  }
  EXPECT_TRUE(ValidateQueueName(std::string(200, 'q')).ok());
}

TEST(QueueNameTest, RefusesTheRestAndEscapesIt) {
  for (const std::string& name : {std::string(),
                                  std::string(201, 'q'),
                                  std::string("-a"),
                                  std::string("a b"),
                                  std::string("ä"),
                                  std::string("a\0b", 3),
                                  std::string("a\nb")}) {
    EXPECT_EQ(ValidateQueueName(name).reason(), "invalid_queue") << name;
  }
  EXPECT_EQ(ValidateQueueName("a\x1b[31mb").message().find('\x1b'), std::string::npos);
}

TEST(KeyTest, TakesUtf8AndRefusesControlBytes) {
  EXPECT_TRUE(ValidateKey("order:ä/1 b").ok());
  for (const std::string& key :
       {std::string(), std::string(201, 'k'), std::string("a\tb"), std::string("\x7f")}) {
    EXPECT_EQ(ValidateKey(key).reason(), "invalid_key");
  }
}

TEST(JobRefTest, IsToldAsItIsWritten) {
  EXPECT_EQ(DescribeJobRef(KeyRef{.queue = "orders", .key = "заказ:漢字🎉"}),
            "key заказ:漢字🎉 in queue orders");
  EXPECT_EQ(DescribeJobRef(KeyRef{.queue = "q", .key = "a\n\x9b\u202e"}),
            "key a\\x0a\\x9b\\xe2\\x80\\xae in queue q");
  // Cut between characters.
  EXPECT_EQ(DescribeJobRef(KeyRef{.queue = "q", .key = std::string(63, 'k') + "ä"}),
            "key " + std::string(63, 'k') + "... in queue q");
}

}  // namespace
}  // namespace delayd

#include "daemon/engine/parked_replies.h"

#include <vector>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

constexpr RequestId kParked = 10'000;
constexpr uint64_t kCommits = 10;

bool IsEven(const Reply& reply) {
  return reply.request % 2 == 0;
}

Reply For(RequestId request, uint64_t sequence) {
  Reply reply;
  reply.request = request;
  reply.sequence = sequence;
  return reply;
}

// All parked answers were looked at for each: a hundred million looks when ten thousand clients go.
TEST(ParkedRepliesTest, P10EachIsLookedAtOnceHoweverManyAreLookedFor) {
  ParkedReplies parked;
  for (RequestId request = 1; request <= kParked; ++request) {
    parked.Park(For(request, 1 + request % kCommits));
  }
  size_t looks = 0;
  const auto is_even = [&looks](const Reply& reply) {
    ++looks;
    return IsEven(reply);
  };
  for (RequestId request = 1; request <= kParked; ++request) {
    const Reply* const found = parked.Find(request, is_even);
    ASSERT_EQ(found != nullptr, request % 2 == 0) << request;
    ASSERT_TRUE(found == nullptr || found->request == request);
  }
  EXPECT_EQ(looks, kParked);
}

TEST(ParkedRepliesTest, OneIsFoundThatCameAfterALookAndNoneThatWasReleased) {
  ParkedReplies parked;
  parked.Park(For(2, 1));
  EXPECT_EQ(parked.Find(4, IsEven), nullptr);
  parked.Park(For(4, 1));
  parked.Park(For(6, 2));
  ASSERT_NE(parked.Find(4, IsEven), nullptr);
  std::vector<Reply> ready;
  parked.Release(1, &ready);
  EXPECT_EQ(ready.size(), 2U);
  EXPECT_EQ(parked.Find(4, IsEven), nullptr);
  ASSERT_NE(parked.Find(6, IsEven), nullptr);
  EXPECT_EQ(parked.Find(6, IsEven)->request, 6U);
}

}  // namespace
}  // namespace delayd::engine

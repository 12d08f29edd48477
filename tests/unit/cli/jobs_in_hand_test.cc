#include "cli/jobs_in_hand.h"

#include <poll.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include <sys/eventfd.h>

namespace delayd::cli {
namespace {

bool IsTold(int fd, int wait_ms = 0) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, wait_ms) == 1;
}

TEST(JobsInHandTest, WhoHasAJobIsToldAndWaitedFor) {
  const int first = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  const int second = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  JobsInHand in_hand;
  bool put_down = false;
  in_hand.Take(JobId{1}, first);
  in_hand.Take(JobId{2}, second);
  EXPECT_FALSE(IsTold(first));
  in_hand.PutDown(JobId{2});
  std::thread other([&] {
    in_hand.Take(JobId{1}, second);
    EXPECT_TRUE(put_down);
    in_hand.PutDown(JobId{1});
  });
  EXPECT_TRUE(IsTold(first, 60'000));
  put_down = true;
  in_hand.PutDown(JobId{1});
  other.join();
  EXPECT_FALSE(IsTold(first)) << "its next job is not meant";
  EXPECT_FALSE(IsTold(second));
  close(first);
  close(second);
}

}  // namespace
}  // namespace delayd::cli

#include "cli/jobs_in_hand.h"

#include <unistd.h>

#include <cstdint>

#include "base/check.h"

namespace delayd::cli {

void JobsInHand::Take(JobId job, int told_fd) {
  std::unique_lock lock(mutex_);
  for (auto found = holders_.find(job); found != holders_.end(); found = holders_.find(job)) {
    Holder& holder = found->second;
    if (!holder.told) {
      holder.told = true;
      const uint64_t one = 1;
      DELAYD_CHECK(write(holder.told_fd, &one, sizeof one) == sizeof one);
    }
    put_down_.wait(lock);
  }
  holders_.emplace(job, Holder{.told_fd = told_fd});
}

void JobsInHand::PutDown(JobId job) {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(job);
  DELAYD_CHECK(found != holders_.end());
  if (found->second.told) {
    // Take the message back if the slot has not read it: it does not concern its next job.
    uint64_t one = 0;
    DELAYD_CHECK(read(found->second.told_fd, &one, sizeof one) == sizeof one);
  }
  holders_.erase(found);
  put_down_.notify_all();
}

}  // namespace delayd::cli

// cli/jobs_in_hand.h — which jobs the slots of a worker are handling, so that no two slots handle
// the same job.
//
// What:    when a job is handed out again while its handler runs here, its earlier lease is over
//          (the daemon was restarted, say). The slot that holds it would not notice before it tries
//          to extend the lease.
// Threads: any.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/job.h"

namespace delayd::cli {

class JobsInHand {
 public:
  // If another slot has the job, writes 1 to that slot's `told_fd`, an eventfd that counts
  // (EFD_SEMAPHORE), and waits until it puts the job down.
  void Take(JobId job, int told_fd);
  void PutDown(JobId job);

 private:
  struct Holder {
    int told_fd = -1;
    bool told = false;
  };

  std::mutex mutex_;
  std::condition_variable put_down_;
  std::map<JobId, Holder> holders_;
};

}  // namespace delayd::cli

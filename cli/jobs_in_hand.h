// cli/jobs_in_hand.h — which jobs the slots of a worker have handlers for, so that no two of them
// are at the same job.
//
// What:    a job that is handed out again while its handler runs here has an earlier lease that is
//          over (the daemon was restarted, say), which its slot would only notice when it extends
//          it.
// Threads: any.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/job.h"

namespace delayd::cli {

class JobsInHand {
 public:
  // A slot that has the job already is told by one on its `told_fd`, an eventfd that counts
  // (EFD_SEMAPHORE), and waited for until it puts the job down.
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

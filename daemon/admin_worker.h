// daemon/admin_worker.h — the thread that runs an operator's command while the turn goes on.
//
// Errors:  the command's own, in its answer.
// Threads: Start, Stop and the destructor from one thread; `function` and `done` are called from
// the
//          worker's. The destructor waits for the command under way, which was told to stop.
// Cost:    a thread that sleeps while there is no command.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "daemon/admin.h"

namespace delayd {

class AdminWorker {
 public:
  using Done = std::function<void(AdminAnswer answer)>;

  AdminWorker(AdminFunction function, Done done);
  ~AdminWorker();
  AdminWorker(const AdminWorker&) = delete;
  AdminWorker& operator=(const AdminWorker&) = delete;

  // One command at a time: the one before must have been reported done.
  void Start(AdminCommand command);
  // The command under way, and every later one, gives up soon.
  void Stop();

 private:
  void Run();

  const AdminFunction function_;
  const Done done_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<AdminCommand> next_;  // guarded by mutex_
  bool ending_ = false;               // guarded by mutex_
  std::thread thread_;
};

}  // namespace delayd

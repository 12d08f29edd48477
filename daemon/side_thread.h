// daemon/side_thread.h — a thread for long work outside the turn: an operator's command, the files
// of a reload, or giving memory back.
//
// Errors:  the task's own.
// Threads: Start and the destructor from one thread. The destructor waits for the task under way.
// Cost:    a thread that sleeps while there is no task.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace delayd {

class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // One task at a time: the previous one must have reported that it is done.
  void Start(std::function<void()> task);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> next_;  // guarded by mutex_
  bool ending_ = false;         // guarded by mutex_
  std::thread thread_;
};

}  // namespace delayd

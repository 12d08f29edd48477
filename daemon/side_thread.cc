#include "daemon/side_thread.h"

#include <utility>

#include "base/check.h"

namespace delayd {

SideThread::SideThread() : thread_([this] { Run(); }) {}

SideThread::~SideThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void SideThread::Start(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    DELAYD_CHECK(next_ == nullptr);
    next_ = std::move(task);
  }
  wake_.notify_one();
}

void SideThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return next_ != nullptr || ending_; });
      if (next_ == nullptr) {
        return;
      }
      task = std::exchange(next_, nullptr);
    }
    task();
  }
}

}  // namespace delayd

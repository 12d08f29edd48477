#include "daemon/admin_worker.h"

#include <utility>

#include "base/check.h"

namespace delayd {

AdminWorker::AdminWorker(AdminFunction function, Done done)
    : function_(std::move(function)), done_(std::move(done)), thread_([this] { Run(); }) {}

AdminWorker::~AdminWorker() {
  Stop();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AdminWorker::Start(AdminCommand command) {
  {
    const std::lock_guard lock(mutex_);
    DELAYD_CHECK(!next_.has_value());
    next_ = std::move(command);
  }
  wake_.notify_one();
}

void AdminWorker::Stop() {
  stop_.store(true);
}

void AdminWorker::Run() {
  while (true) {
    AdminCommand command;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return next_.has_value() || ending_; });
      if (!next_.has_value()) {
        return;
      }
      command = *std::exchange(next_, std::nullopt);
    }
    done_(function_(command, stop_));
  }
}

}  // namespace delayd

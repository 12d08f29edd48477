#include "daemon/committer.h"

#include <utility>

#include "base/crash_point.h"

namespace delayd {

Committer::Committer(storage::JobStore* store, Done done)
    : store_(store), done_(std::move(done)), thread_([this] { Run(); }) {}

Committer::~Committer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Committer::Submit(engine::SealedBatch batch) {
  {
    const std::lock_guard lock(mutex_);
    DELAYD_CHECK(!next_.has_value());
    DELAYD_CHECK(!stopping_);
    next_ = std::move(batch);
  }
  wake_.notify_one();
}

void Committer::Run() {
  Status failed;
  while (true) {
    engine::SealedBatch batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return next_.has_value() || stopping_; });
      if (!next_.has_value()) {
        return;
      }
      batch = *std::exchange(next_, std::nullopt);
    }
    if (failed.ok()) {
      DELAYD_CRASH_POINT("committer/before_write");
      failed = store_->Commit(*batch.batch);
      DELAYD_CRASH_POINT("committer/after_write");
      if (!failed.ok()) {
        failed = failed.WithContext("commit " + std::to_string(batch.sequence));
      }
    }
    done_(batch.sequence, failed);
  }
}

}  // namespace delayd

// RocksDB merges nothing meanwhile: its threads for that are kept busy.
#pragma once

#include <condition_variable>
#include <mutex>

#include <rocksdb/env.h>

namespace delayd::storage {

class NoMerges {
 public:
  // As many threads as an open store has asked for.
  NoMerges() : busy_(env_->GetBackgroundThreads(rocksdb::Env::LOW)) {
    for (int i = 0; i < busy_; ++i) {
      env_->Schedule(&Wait, this, rocksdb::Env::LOW);
    }
  }

  ~NoMerges() {
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return busy_ == 0; });
  }

  NoMerges(const NoMerges&) = delete;
  NoMerges& operator=(const NoMerges&) = delete;

 private:
  static void Wait(void* object) {
    auto* self = static_cast<NoMerges*>(object);
    std::unique_lock lock(self->mutex_);
    self->changed_.wait(lock, [self] { return self->over_; });
    --self->busy_;
    self->changed_.notify_all();
  }

  rocksdb::Env* const env_ = rocksdb::Env::Default();
  std::mutex mutex_;
  std::condition_variable changed_;
  int busy_;  // guarded by mutex_, as what follows
  bool over_ = false;
};

}  // namespace delayd::storage

#include "daemon/committer.h"

#include <utility>

#include "base/crash_point.h"
#include "daemon/log.h"

namespace delayd {

namespace {

// Longer than a disk that works takes to answer.
constexpr Millis kHeldUp{50};

}  // namespace

Committer::Committer(storage::JobStore* store,
                     Done done,
                     DiskReserve reserve,
                     DiskChanged disk_changed,
                     CommitWatch watch)
    : store_(store),
      done_(std::move(done)),
      reserve_(std::move(reserve)),
      disk_changed_(std::move(disk_changed)),
      watch_(watch) {
  Look();
  thread_ = std::thread([this] { Run(); });
}

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

// Only this thread can report that commit: the core thread itself is waiting for the disk.
bool Committer::IsHeldUpHere() {
  const auto since = here_since_.load(std::memory_order_relaxed);
  if (since == kNone) {
    return false;
  }
  const auto age = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - since);
  watch_.Look(since, age);
  return age >= kHeldUp;
}

bool Committer::IsHeldUp() const {
  const auto since = looking_since_.load(std::memory_order_relaxed);
  return since != kNone && std::chrono::steady_clock::now() - since >= kHeldUp;
}

void Committer::Look() {
  if (!IsHeldUpHere()) {  // else the disk would hold up this thread too
    looking_since_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
    LookAtStore();
    looking_since_.store(kNone, std::memory_order_relaxed);
  }
  log::TellLeftOut();
  next_look_ = std::chrono::steady_clock::now() + reserve_.options().interval;
}

void Committer::LookAtStore() {
  if (reserve_.watched() && reserve_.Look()) {
    disk_changed_(reserve_.refusal());
  }
  Status store = store_->Check();
  if (!store.ok() && !std::exchange(told_end_, true)) {
    done_(0, std::move(store));
  }
}

void Committer::WaitForBatch(std::unique_lock<std::mutex>* lock) {
  const auto wanted = [this] { return next_.has_value() || stopping_; };
  // Under load the wait never times out, so the time is also checked between batches.
  while (!wake_.wait_until(*lock, next_look_, wanted) ||
         (!stopping_ && std::chrono::steady_clock::now() >= next_look_)) {
    lock->unlock();
    Look();
    lock->lock();
  }
}

Status Committer::CommitHere(const engine::SealedBatch& batch,
                             const storage::JobStore::OnDurable& on_durable) {
  {
    const std::lock_guard lock(mutex_);
    DELAYD_CHECK(!next_.has_value());
  }
  here_since_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  Status status = Write(batch, on_durable);
  here_since_.store(kNone, std::memory_order_relaxed);
  return status;
}

Status Committer::Write(const engine::SealedBatch& batch,
                        const storage::JobStore::OnDurable& on_durable) {
  if (failed_.ok()) {
    DELAYD_CRASH_POINT("committer/before_write");
    failed_ = store_->Commit(*batch.batch, on_durable);
    DELAYD_CRASH_POINT("committer/after_write");
    if (!failed_.ok()) {
      failed_ = failed_.WithContext("commit " + std::to_string(batch.sequence));
    }
  }
  return failed_;
}

void Committer::Run() {
  while (true) {
    engine::SealedBatch batch;
    {
      std::unique_lock lock(mutex_);
      WaitForBatch(&lock);
      if (!next_.has_value()) {
        return;
      }
      batch = *std::exchange(next_, std::nullopt);
    }
    done_(batch.sequence, Write(batch, {}));
  }
}

}  // namespace delayd

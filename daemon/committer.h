// daemon/committer.h — the thread that writes: one batch at a time, durable when it says so.
//
// What:    the engine gathers while a batch is being written; the next Submit takes all of that.
//          No lock guards the engine, and no timer waits for more to come. Beside the commits it
//          looks once a second at the free space of the disk, and whether the store has come to an
//          end, which a daemon without commits would not learn; and, while the core thread writes,
//          whether the disk answers it. Lines that the log has left out are told then, too.
// Units:   batches by their sequence.
// Errors:  the store's, passed on with the batch's number. After the first one nothing is written
//          any more: what the store holds is then unknown until it is opened again.
// Threads: Submit, CommitHere and the destructor from the core thread; `done` is called on the
//          committer's own thread and must hand over to the core thread.
// Cost:    one wake-up of a thread each way per batch that is submitted.
// Source:  group commit, as DeWitt et al. 1984 have it; the queue is one batch long on purpose.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/status.h"
#include "daemon/commit_watch.h"
#include "daemon/disk_reserve.h"
#include "daemon/engine/engine.h"
#include "storage/job_store.h"

namespace delayd {

class Committer {
 public:
  // Once with sequence 0: the store takes no commit any more, though none was tried.
  using Done = std::function<void(uint64_t sequence, Status status)>;
  // OK: new jobs can be written again.
  using DiskChanged = std::function<void(Status refusal)>;

  // The store must outlive the committer, and nobody else commits to it meanwhile. `disk_changed`
  // is called as `done` is, and once from here when the disk is full already.
  Committer(storage::JobStore* store,
            Done done,
            DiskReserve reserve = DiskReserve({}),
            DiskChanged disk_changed = {},
            CommitWatch watch = CommitWatch());
  // Waits for the batch under way, whose `done` is still called.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // At most one batch is in flight: the one before must have been reported done.
  void Submit(engine::SealedBatch batch);
  // The same on the caller's own thread, which waits for the disk: no wake-up, and no `done`.
  // `on_durable` as the store has it.
  Status CommitHere(const engine::SealedBatch& batch,
                    const storage::JobStore::OnDurable& on_durable);
  // Whether a look at the disk does not come back, as where stat(2) itself hangs: then nobody would
  // watch what CommitHere writes.
  bool IsHeldUp() const;

 private:
  static constexpr std::chrono::steady_clock::time_point kNone{};

  void Run();
  Status Write(const engine::SealedBatch& batch, const storage::JobStore::OnDurable& on_durable);
  void Look();
  void LookAtStore();
  bool IsHeldUpHere();
  // Returns when there is a batch, or when the committer ends; meanwhile it looks once a second.
  void WaitForBatch(std::unique_lock<std::mutex>* lock);

  storage::JobStore* const store_;
  const Done done_;
  DiskReserve reserve_;
  const DiskChanged disk_changed_;
  std::chrono::steady_clock::time_point next_look_;
  CommitWatch watch_;  // of what CommitHere writes
  // When that began, and a look at the store; none: nothing is written so, and not looked at.
  std::atomic<std::chrono::steady_clock::time_point> here_since_{kNone};
  std::atomic<std::chrono::steady_clock::time_point> looking_since_{kNone};
  bool told_end_ = false;
  Status failed_;  // of whoever writes; one batch at a time hands it over
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<engine::SealedBatch> next_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;
};

}  // namespace delayd

// daemon/committer.h — the thread that commits: one batch at a time, durable once it reports so.
//
// What:    while one batch is being written the engine collects changes, and the next Submit takes
//          all of them. No lock guards the engine, and no timer delays a batch to let it grow.
//          Once a second the thread also checks the free disk space, and whether the store can
//          still commit, which an idle daemon would not notice. While the core thread commits, it
//          checks whether the disk responds. It also reports suppressed log lines then.
// Units:   batches by their sequence.
// Errors:  the store's, passed on with the batch's number. After the first error nothing more is
//          written: what the store holds is unknown until it is opened again.
// Threads: Submit, CommitHere and the destructor on the core thread; `done` is called on the
//          committer's own thread and must hand over to the core thread.
// Cost:    one thread wake-up each way per submitted batch.
// Source:  group commit, as in DeWitt et al. 1984; the queue holds one batch on purpose.
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
  // A sequence of 0, sent once, means that the store takes no more commits, though none was tried.
  using Done = std::function<void(uint64_t sequence, Status status)>;
  // OK: new jobs can be written again.
  using DiskChanged = std::function<void(Status refusal)>;

  // The store must outlive the committer, and nothing else may commit to it meanwhile.
  // `disk_changed` is called like `done`, and once by the constructor if the disk is already full.
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
  // `on_durable` is passed on to the store.
  Status CommitHere(const engine::SealedBatch& batch,
                    const storage::JobStore::OnDurable& on_durable);
  // True if the committer's own check of the disk does not return, for example because stat(2)
  // hangs: then nothing would watch a commit made by CommitHere.
  bool IsHeldUp() const;

 private:
  static constexpr std::chrono::steady_clock::time_point kNone{};

  void Run();
  Status Write(const engine::SealedBatch& batch, const storage::JobStore::OnDurable& on_durable);
  void Look();
  void LookAtStore();
  bool IsHeldUpHere();
  // Returns when there is a batch, or when the committer ends; looks once a second meanwhile.
  void WaitForBatch(std::unique_lock<std::mutex>* lock);

  storage::JobStore* const store_;
  const Done done_;
  DiskReserve reserve_;
  const DiskChanged disk_changed_;
  std::chrono::steady_clock::time_point next_look_;
  CommitWatch watch_;  // of commits made by CommitHere
  // When the current CommitHere and the current look at the store began; kNone: not under way.
  std::atomic<std::chrono::steady_clock::time_point> here_since_{kNone};
  std::atomic<std::chrono::steady_clock::time_point> looking_since_{kNone};
  bool told_end_ = false;
  Status failed_;  // owned by the thread that commits; the batch in flight hands it over
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<engine::SealedBatch> next_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;
};

}  // namespace delayd

// daemon/committer.h — the thread that writes: one batch at a time, durable when it says so.
//
// What:    the engine gathers while a batch is being written; the next Submit takes all of that.
//          No lock guards the engine, and no timer waits for more to come.
// Units:   batches by their sequence.
// Errors:  the store's, passed on with the batch's number. After the first one nothing is written
//          any more: what the store holds is then unknown until it is opened again.
// Threads: Submit and the destructor from the core thread; `done` is called on the committer's own
//          thread and must hand over to the core thread.
// Cost:    one wake-up of a thread each way per batch.
// Source:  group commit, as DeWitt et al. 1984 have it; the queue is one batch long on purpose.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/status.h"
#include "daemon/engine/engine.h"
#include "storage/job_store.h"

namespace delayd {

class Committer {
 public:
  using Done = std::function<void(uint64_t sequence, Status status)>;

  // The store must outlive the committer, and nobody else commits to it meanwhile.
  Committer(storage::JobStore* store, Done done);
  // Waits for the batch under way, whose `done` is still called.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // At most one batch is in flight: the one before must have been reported done.
  void Submit(engine::SealedBatch batch);

 private:
  void Run();

  storage::JobStore* const store_;
  const Done done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<engine::SealedBatch> next_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;
};

}  // namespace delayd

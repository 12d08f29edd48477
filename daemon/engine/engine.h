// daemon/engine/engine.h — the state machine of all jobs of one shard: deterministic, with no I/O
// and no clock of its own.
//
// What:    Execute takes commands and Advance takes the time. Both decide at once, against memory
//          and the store as it will be when everything decided so far is durable. Their changes are
//          gathered in batches: Seal hands a batch to the committer, Committed reports that it is
//          durable, and TakeReplies returns the answers that depend on durable batches only. An
//          answer never runs ahead of the disk (P1).
// Units:   base/time.h. Times come in as arguments; the wall clock may step either way, the boot
//          clock may not.
// Errors:  a client's mistake is the status of its reply. A store that cannot be read, or a broken
//          invariant of our own, is fatal(): nothing is answered after it and the process must end.
//          Damaged records are reported by TakeIncidents.
// Threads: one owner, on whose thread the store is read, through the const JobReader only.
// Cost:    O(1) table work per command plus the wheel's; a lease reads one record from the store.
// Source:  the life of a job follows beanstalkd's protocol; the turn, in which replies are sent
//          after the sync, follows Redis' event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/command.h"
#include "daemon/engine/engine_figures.h"
#include "daemon/engine/queue_settings.h"
#include "storage/batch.h"
#include "storage/job_store.h"

namespace delayd::engine {

struct EngineOptions {
  uint64_t boot_id = 0;  // base/clock.h
  // What the machine's clock shows at the start, believed or not: when ids and tokens were given
  // out in another life (other_life.h), it may have been right. None: the same as the believed
  // clock.
  std::optional<WallTime> machine_wall;
  size_t payload_bytes_max = limits::kPayloadBytesDefaultMax;
  // The settings of queues that `queues` does not name. Configure changes both.
  QueueSettings defaults;
  std::map<std::string, QueueSettings> queues;
  // Only jobs due within the horizon are kept in memory, and of those as many as the budget allows.
  Millis horizon{std::chrono::minutes(10)};
  size_t memory_jobs_max = limits::kMemoryJobsDefaultMax;
  // While jobs are pending, the highest wall time is written down at least this often; 0: only with
  // other changes.
  Millis clock_note_interval{0};
  // With other changes it is written only when what was written last is off by this much.
  Millis clock_note_min{0};
  // How many queues without a job are remembered.
  size_t empty_queues_max = limits::kEmptyQueuesMax;
  // The low-water mark is recomputed after changes to this many jobs.
  size_t jobs_per_mark = 1;
  // Entries of the job table that one turn looks at when memory is freed; dropping one takes about
  // a microsecond.
  uint32_t sweep_slots = 16'384;
  // Read between steps of work that reads the disk while no client waits for it, to bound the time
  // it takes. None: only counts bound it.
  std::function<Millis()> stopwatch;
};

// A batch on its way to the committer. The engine keeps reading it until Committed.
struct SealedBatch {
  uint64_t sequence = 0;
  std::shared_ptr<const storage::Batch> batch;
  size_t jobs = 0;  // how many jobs it changes
};

class Engine {
 public:
  // Called now and then with the number of timers loaded so far, while a start reads the store.
  using Progress = std::function<void(uint64_t timers)>;

  // Reads the timers from the low-water mark on and rebuilds wheel and ready queues. The first Seal
  // afterwards gives the batch that makes the new epoch durable: commit it before any request is
  // served.
  static StatusOr<std::unique_ptr<Engine>> Load(const EngineOptions& options,
                                                const storage::JobReader& store,
                                                const Now& now,
                                                const Progress& progress = {});
  virtual ~Engine() = default;

  virtual void Execute(RequestId request, Command command, const Now& now) = 0;

  // Fires what is due, ends leases and waits. Does a bounded amount of work and returns whether
  // more is due at `now`.
  virtual bool Advance(const Now& now) = 0;

  // How long the owner may sleep from `now` on: until the next timer, lease end or end of a wait.
  // None: until a command.
  virtual std::optional<Micros> UntilNextEvent(const Now& now) const = 0;

  // Whether a request waits for a job that becomes ready.
  virtual bool IsAwaited() const = 0;

  // The oldest gathered batch, or nothing when nothing was changed. Batches must be committed in
  // order, and each Seal must be followed by one Committed; a caller that fails to commit a batch
  // must end the process.
  virtual std::optional<SealedBatch> Seal(const Now& now) = 0;
  // The batch will survive a crash, though a reader of the store may not see it yet: its answers
  // are released. Everything else waits for Committed. This call is optional.
  virtual void Durable(uint64_t sequence) = 0;
  virtual void Committed(uint64_t sequence) = 0;

  virtual std::vector<Reply> TakeReplies() = 0;

  // From now on an Enqueue that would store a new job, or replace one, is answered with `why`; OK
  // lifts it. Everything else goes on. For an owner whose disk is nearly full.
  virtual void RefuseEnqueues(Status why) = 0;
  virtual const Status& enqueue_refusal() const = 0;
  // OK, or kResourceExhausted "memory_full": jobs that have been due for a while are on disk
  // because memory has no room for more. O(queues) while any queue lags behind.
  virtual Status CheckBacklog() const = 0;
  // What the last Drain asked for.
  virtual bool draining() const = 0;

  // Bytes gathered and not yet durable: the owner stops reading requests above a bound.
  virtual size_t uncommitted_bytes() const = 0;
  // Whether so many leases that ended by themselves are not durable yet that a commit must come
  // first. Until then the owner gives back no more jobs of clients that have disconnected.
  virtual bool has_own_work_enough() const = 0;
  virtual const Status& fatal() const = 0;
  // Damaged records found since the last call, for the log; each job once.
  virtual std::vector<Status> TakeIncidents() = 0;
  // What GetStats answers, without a request.
  virtual StatsView stats() const = 0;
  // For monitoring: everything that is counted, with `queues_max` queues by name. O(queues).
  virtual EngineFigures Figures(size_t queues_max) const = 0;
};

}  // namespace delayd::engine

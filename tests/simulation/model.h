// tests/simulation/model.h — what delayd promises, as a program: plain maps, linear searches, no
// disk.
//
// What:    executes the same commands as the engine, in the same order, and says what the answer
// must be and which
//          batch it must wait for. A copy of the model is the store as it must be at that moment;
//          the oracle keeps one for every batch under way, so that after a crash it knows to the
//          last job what must be there.
// Learned, not predicted: the low-water marks and what retention trimmed. They are read from the
//          sealed batches (oracle.cc), because when they move is the engine's own affair.
// With little memory a queue's ready jobs may lie on disk, and which of them are handed out is the
//          engine's affair too: then the model follows (model_follow.cc), and checks that each was
//          ready, that older ones came first, and that no queue's due jobs wait for another queue.
// Errors:  none; the answers carry the status reasons that clients must get.
// Threads: one. Cost: O(jobs) per command; meant for some hundred jobs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/job.h"
#include "daemon/engine/clock_note.h"
#include "daemon/engine/command.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/key_retention.h"
#include "daemon/engine/rate_bucket.h"
#include "daemon/engine/wall_offsets.h"

namespace delayd::simulation {

struct ModelJob {
  JobId id{};
  // As the client asked for it; never changed.
  std::shared_ptr<const JobSpec> spec;
  JobState state = JobState::kScheduled;  // never kFinished: such jobs leave the map
  DueKind due_kind = DueKind::kRelative;
  WallTime due;
  BootTime boot_due;
  Micros rounded_up{0};  // what that added to what was promised; until the job is read from disk
  uint64_t boot_id = 0;
  bool on_boot_clock = false;  // which clock the promise counts on now
  bool waits_again = false;    // it had fired when the wall clock was set back
  WallTime created;
  uint32_t priority = 0;
  uint32_t attempts = 0;
  uint32_t max_attempts = 0;
  uint32_t timeouts = 0;
  uint32_t releases = 0;
  uint32_t returns = 0;
  uint32_t buries = 0;
  uint32_t kicks = 0;
  Millis lease{0};
  std::string last_error;
  std::vector<JobEvent> events;
  std::string client;  // of its lease, or of the last one
  std::string user;
  WallTime place;           // key_due of a pending job, time of death of a dead one
  uint64_t batch = 0;       // the batch of its last change
  uint64_t timer_rank = 0;  // order among timers of the same millisecond
  uint64_t lease_sequence = 0;
  BootTime lease_end;
  WallTime lease_end_wall;  // as the wall clock stood when it was set
};

// What is known under a caller's key, and of its finished jobs.
struct ModelKey {
  JobId id{};
  std::shared_ptr<const JobSpec> spec;
  uint64_t batch = 0;
  bool finished = false;
  WallTime finished_at;
  WallTime expiry;
};

struct ModelDone {
  std::string queue;
  std::string key;
  bool cancelled = false;
  uint32_t attempts = 0;
  WallTime due;
  WallTime created;
  WallTime kept_until;
  std::optional<ModelJob> story;  // where the queue keeps a history
  uint64_t batch = 0;
};

struct ModelPause {
  WallTime since;
  std::optional<Millis> length;
  uint64_t boot_id = 0;
  BootTime end;
  uint64_t timer_rank = 0;
};

struct ModelQueue {
  bool stored = false;  // else only waiting workers know it
  QueueId id{};         // learned from its row
  std::optional<ModelPause> pause;
  engine::RateBucket bucket;
  std::optional<BootTime> rate_timer;
  uint64_t rate_rank = 0;
  // Since the start.
  uint64_t enqueued = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;
  uint64_t pauses = 0;
  std::vector<uint64_t> waiters;
};

struct ModelWaiter {
  engine::RequestId request = 0;
  engine::Lease command;
  BootTime end;
  uint64_t timer_rank = 0;
  bool settled = false;  // when it was asked, everything due had been looked at
};

// A predicted answer: it may be given once `batch` is durable.
struct Expected {
  engine::Reply reply;
  uint64_t batch = 0;
  Now decided;
};

using QueueKey = std::pair<std::string, std::string>;
using DoneKey = std::pair<WallTime, JobId>;

class Model {
 public:
  explicit Model(const engine::EngineOptions& options) : options_(options) {}

  // ---- transitions; each appends the answers it causes to `answers` ----
  void Execute(engine::RequestId request, const engine::Command& command, const Now& now);
  void Advance(const Now& now);
  // These hand-outs were never seen by anybody: no attempt is used, and what is due is ready again.
  void TakeBack(const engine::Leased& leased, const Now& now);
  // The process ended and starts again, on what this model holds.
  void Restart(const engine::EngineOptions& options, uint64_t next_id, const Now& now);

  std::vector<Expected> TakeAnswers() { return std::exchange(answers_, {}); }

  // ---- views ----
  const std::map<JobId, ModelJob>& jobs() const { return jobs_; }

  const std::map<QueueKey, ModelKey>& keys() const { return keys_; }

  const std::map<DoneKey, ModelDone>& done() const { return done_; }

  const std::map<std::string, ModelQueue>& queues() const { return queues_; }

  const std::map<uint64_t, ModelWaiter>& waiters() const { return waiters_; }

  const engine::StatsView& counters() const { return counters_; }

  // With the settings of the last Configure.
  const engine::EngineOptions& options() const { return options_; }

  // What the timer waits for. A delay ends a millisecond later than the clocks say, for they are
  // read rounded down; a job that waits again after a step back may do so too.
  static WallTime WallDue(const ModelJob& job) {
    return job.due + Millis(job.due_kind == DueKind::kRelative || job.waits_again ? 1 : 0);
  }

  static BootMicros BootDue(const ModelJob& job) { return job.boot_due - job.rounded_up; }

  static bool IsDue(const ModelJob& job, const Now& now) {
    return job.on_boot_clock ? BootDue(job) <= now.exact_boot() : WallDue(job) <= now.wall;
  }

  static Micros UntilDue(const ModelJob& job, const Now& now) {
    return job.on_boot_clock ? BootDue(job) - now.exact_boot()
                             : WallDue(job) - now.wall - now.wall_rest;
  }

  // Below zero: the wall clock was set back since it fired.
  static Millis Lateness(const ModelJob& job, const Now& now) {
    return job.on_boot_clock ? std::max(now.boot - job.boot_due, Millis(0)) : now.wall - job.due;
  }

  engine::StatsView Stats() const;
  JobView ViewOf(const ModelJob& job, JobState state) const;
  WallTime DueByNow(const ModelJob& job) const;
  // The earliest event that the engine must not sleep through.
  std::optional<Micros> UntilNextEvent(const Now& now) const;
  // Rows of finished jobs stay until no queue can want them.
  Millis LongestRetention() const;
  bool HasRetentionOver() const;
  // How long until the oldest of them must be looked at, at the latest. None: no row is kept.
  std::optional<Millis> UntilTrim(const Now& now) const;

  bool IsKept(const ModelDone& done) const { return done.kept_until > now_.wall; }

  // With this horizon every job is in memory. With another a job goes when the engine sees fit, and
  // comes back with its promise rounded up: then the clocks must show whole milliseconds.
  static constexpr Millis kHorizonOfAll = std::chrono::hours(24 * 3650);

  static bool HoldsAll(const engine::EngineOptions& options) {
    return options.horizon == kHorizonOfAll;
  }

  // What the batch that is being sealed will change; set by the oracle.
  uint64_t open_batch = 1;
  WallTime mark;
  WallTime done_mark;
  WallTime noted_wall;  // the highest that was believed
  uint64_t epoch = 0;
  void Trimmed(const DoneKey& done);
  void Named(const std::string& queue, QueueId id);
  // The engine says that nothing is left of this queue. What speaks against it, or nothing.
  std::string Forgotten(const std::string& name, const Now& now);
  // The disk is nearly full: new jobs are refused.
  bool refuses_enqueues = false;

  // ---- model_follow.cc: with little memory; a text says what is wrong ----
  static constexpr size_t kLittleMemoryJobsMax = 999;

  bool Follows() const { return options_.memory_jobs_max <= kLittleMemoryJobsMax; }

  // Whose timers fall due in one tick is served in either order: which of the leases of that turn
  // has which number is learned.
  void LearnLeases(const engine::Leased& actual, engine::Leased* expected);
  bool AnyMayBeReady(const Now& now) const;
  bool IsOpenLease(engine::RequestId request) const;
  std::string Follow(engine::RequestId request, const engine::Leased& leased);

  bool IsOpenPeek(engine::RequestId request) const { return open_peeks_.contains(request); }

  std::string FollowPeek(const engine::Reply& reply);
  // A job is dead on disk: if that was not predicted, it was looked at and had expired.
  void FollowDeath(JobId id);
  // Nothing is left to do at this time.
  std::string Settled();

  // The counts of ready and scheduled jobs, of a queue or of all, as far as memory lets the engine
  // tell them apart.
  template <typename View>
  static void FollowCounts(const View& actual, View* expected) {
    if (actual.scheduled + actual.ready == expected->scheduled + expected->ready &&
        actual.ready <= expected->ready && actual.urgent <= expected->urgent) {
      expected->scheduled = actual.scheduled;
      expected->ready = actual.ready;
      expected->urgent = actual.urgent;
    }
  }

  // The rows on disk, in order: what a change of many goes through. Set by the oracle before one.
  struct Row {
    WallTime place;
    JobId id{};
    bool dead = false;
    std::string queue;
  };

  std::vector<Row> durable_rows;

  // Every batch up to this one is durable.
  void Committed(uint64_t batch) {
    std::erase_if(gone_, [batch](const auto& gone) { return gone.second <= batch; });
  }

 private:
  using Body = decltype(engine::Reply::body);

  // No job of it, nor anything of a finished one.
  bool IsEmpty(const std::string& queue) const;

  struct Found {
    const char* error = nullptr;  // the reason slug of the refusal
    StatusCode code = StatusCode::kOk;
    JobId id{};
    std::optional<DoneKey> finished;
  };

  // model_enqueue.cc
  void Do(engine::RequestId request, const engine::Enqueue& command);
  const char* ValidateDue(const DueSpec& due) const;
  const char* Validate(const JobSpec& spec, StatusCode* code) const;

  // What becomes of one job of an enqueue.
  struct PlannedJob {
    std::optional<size_t> same_as;       // a job before it in the batch, under the same key
    const ModelKey* existing = nullptr;  // what its key leads to
    bool replaces = false;

    bool is_new() const { return !same_as && existing == nullptr; }
  };

  struct Refusal {
    StatusCode code = StatusCode::kOk;
    const char* reason = nullptr;
    uint64_t batch = 0;  // that it rests on
  };

  std::optional<Refusal> Plan(const engine::Enqueue& command,
                              std::vector<PlannedJob>* plan,
                              uint64_t* batch) const;
  std::optional<Refusal> PlanUnderKey(const ModelKey& key,
                                      const JobSpec& spec,
                                      PlannedJob* planned,
                                      uint64_t* batch) const;
  engine::Enqueued CarryOut(const engine::Enqueue& command,
                            const std::vector<PlannedJob>& plan,
                            uint64_t* batch);
  static engine::EnqueuedIds IdsOf(const engine::Enqueued& result,
                                   const std::vector<PlannedJob>& plan);
  const char* CheckQuotas(const engine::Enqueue& command,
                          const std::vector<PlannedJob>& plan) const;
  JobView Create(const std::shared_ptr<const JobSpec>& spec, JobId id, const std::string& user);
  JobView Replace(const std::shared_ptr<const JobSpec>& spec, ModelKey* key);
  JobView FinishedView(const DoneKey& done, uint64_t* batch) const;

  // model.cc
  void Do(engine::RequestId request, const engine::Cancel& command);
  void Do(engine::RequestId request, const engine::CancelIds& command);

  // How the cancel of one job ends; none: it is taken back. `batch` is what that rests on.
  struct CancelEnd {
    StatusCode code = StatusCode::kOk;
    const char* reason = nullptr;  // none: it is taken back
    uint64_t batch = 0;
    JobView view;  // of the job as it was, when it is
  };

  CancelEnd CancelOne(const JobRef& ref, const std::vector<std::string>& tags);
  bool HasTag(const ModelJob& job, const std::vector<std::string>& tags) const;
  void Do(engine::RequestId request, const engine::Reschedule& command);
  void RescheduleOne(engine::RequestId request, const engine::Reschedule& command);
  void Do(engine::RequestId request, const engine::Touch& command);
  void Do(engine::RequestId request, const engine::Show& command);
  void Do(engine::RequestId request, const engine::ListQueues& command);
  void Do(engine::RequestId request, const engine::GetStats& command);

  engine::QueueView ViewOfQueue(const std::string& name) const;

  // model_bulk.cc
  void Do(engine::RequestId request, const engine::ChangeMany& command);
  void Do(engine::RequestId request, const engine::Forecast& command);
  const char* Validate(const engine::ChangeMany& command) const;
  bool IsLeft(const Row& row) const;
  std::vector<Row> RowsToLookAt(const engine::ChangeMany& command,
                                std::optional<WallTime> fixed,
                                std::pair<WallTime, JobId> after) const;
  bool MatchesFilter(const engine::ChangeMany& command,
                     std::optional<WallTime> fixed,
                     JobId id) const;
  bool ChangeOne(const engine::ChangeMany& command, std::optional<WallTime> fixed, JobId id);

  // Checked by the oracle against two moments, not predicted.
  void Do(engine::RequestId, const engine::List&) {}

  void Do(engine::RequestId request, const engine::Drain& command) {
    draining_ = command.on;
    Answer(request, Stats(), 0);
  }

  // What else it changes is seen in ClockWatch only, which the simulation lets accept by itself.
  void Do(engine::RequestId request, const engine::AcceptClock&) {
    clock_note_.Accept(now_);
    Answer(request, Stats(), open_batch);
  }

  void Do(engine::RequestId, const engine::Abandon& command);
  void Do(engine::RequestId, const engine::EndWait& command);

  void SetNow(const Now& now) {
    now_ = now;
    key_retention_.See(now);
    clock_note_.See(now);
  }

  Found Locate(const JobRef& ref) const;
  const ModelKey* FindKey(const std::string& queue, const std::string& key) const;
  // A finished job that is kept; none when it was forgotten.
  std::optional<DoneKey> FindDone(JobId id) const;
  Millis KeptFor(const ModelJob& job) const;
  uint64_t BatchOfRef(const JobRef& ref) const;
  void SetDue(ModelJob* job, const DueSpec& due);

  // A kernel that does not tell its boots apart: then each run has a boot clock of its own.
  uint64_t BootId() const {
    return options_.boot_id != 0 ? options_.boot_id : epoch | uint64_t{1} << 63;
  }

  void Place(ModelJob* job);
  void MakeReady(ModelJob* job);
  void AddEvent(ModelJob* job, JobEvent::Kind kind, std::string_view who, std::string_view what);
  void Finish(const ModelJob& job, bool cancelled);
  void Refuse(engine::RequestId request, StatusCode code, std::string_view reason, uint64_t batch);
  void Answer(engine::RequestId request, Body body, uint64_t batch);
  void AnswerJob(engine::RequestId request, bool brief, JobView view);

  // model_kick.cc
  void Do(engine::RequestId request, const engine::LeaseJob& command);
  void Do(engine::RequestId request, const engine::GiveBack& command);
  void Do(engine::RequestId request, const engine::Kick& command);
  void Do(engine::RequestId request, const engine::KickQueue& command);
  void Do(engine::RequestId request, const engine::Peek& command);
  void KickJob(ModelJob* job);
  std::vector<ModelJob*> InState(const std::string& queue, JobState state);

  // model_pause.cc
  void Do(engine::RequestId request, const engine::Pause& command);
  void Do(engine::RequestId request, const engine::Resume& command);
  void Do(engine::RequestId request, const engine::Configure& command);
  bool MayHandOut(const std::string& queue);
  void WatchRate(const std::string& queue);
  ModelQueue& QueueOf(const std::string& name);
  const engine::QueueSettings& SettingsFor(const std::string& queue) const;
  // The job is leased no longer: somebody may wait for the room that makes.
  void RoomMade(const ModelJob& job);
  void ServeSoon(const std::string& queue);
  void RestorePauses();

  // model_lease.cc
  void Do(engine::RequestId request, const engine::Lease& command);
  void OpenLease(engine::RequestId request, const engine::Lease& command);
  std::string FollowOne(const ModelWaiter& waiter, const JobView& view);
  bool HasDueJob(const std::string& queue) const;
  static bool MayBeReady(const ModelJob& job, const Now& now);
  bool IsOwed(const std::string& queue) const;
  void OpenPeek(engine::RequestId request, const std::string& queue);
  bool Starves(const std::string& queue);
  void Do(engine::RequestId request, const engine::Ack& command);
  void Do(engine::RequestId request, const engine::AckMany& command);
  JobView AckOne(ModelJob* job);
  void Do(engine::RequestId request, const engine::Nack& command);
  void Do(engine::RequestId request, const engine::Bury& command);
  void Do(engine::RequestId request, const engine::Extend& command);
  ModelJob* Holding(const LeaseToken& token);
  ModelJob* BestReady(const std::vector<std::string>& queues);
  engine::Leased HandOut(const engine::Lease& command, uint64_t* batch);
  JobView Grant(ModelJob* job, std::optional<Millis> lease, const std::string& client, Millis late);
  // The request gets what there is: nothing.
  void WaitOver(uint64_t waiter);
  void EndLease(ModelJob* job, std::optional<Millis> delay, std::string_view error, bool counts);
  bool DueWithin(const ModelJob& job, Millis wait) const;
  void Die(ModelJob* job, std::string_view error);
  void Expire(ModelJob* job);
  Millis Backoff(const ModelJob& job) const;
  uint64_t NextToServe(const std::string& queue);
  void ServeQueue(const std::string& queue);
  void RemoveWaiter(uint64_t waiter);

  // Something that falls due, and the order in which the engine's wheels would give it: no job that
  // falls due waits behind a lease that ends.
  struct Due {
    enum class Wheel : uint8_t { kBoot, kWall, kLeases };

    Wheel wheel = Wheel::kBoot;
    Micros tick{0};  // of its clock
    uint64_t rank = 0;
    // One of these.
    JobId job = {};
    uint64_t waiter = 0;
    std::string paused = {};
    std::string rated = {};
  };

  std::vector<Due> AllDue() const;
  void Fire(const Due& due);

  engine::EngineOptions options_;
  Now now_;
  engine::KeyRetention key_retention_{Now()};
  engine::ClockNote clock_note_{Now()};
  WallTime hand_;
  engine::WallOffsets wall_offsets_;  // where a page of a change of many jobs begins and ends
  uint64_t offsets_boot_ = 0;
  std::map<JobId, ModelJob> jobs_;
  std::map<QueueKey, ModelKey> keys_;
  std::map<DoneKey, ModelDone> done_;
  std::map<std::string, ModelQueue> queues_;
  std::map<uint64_t, ModelWaiter> waiters_;

  // Any of the ready jobs, as they were when it was asked for.
  struct PeekCheck {
    std::map<JobId, JobView> ready;
    bool is_owed = false;  // one of them must be in memory
  };

  std::map<engine::RequestId, PeekCheck> open_peeks_;
  // Jobs that ended with a batch that is not durable yet.
  std::map<JobId, uint64_t> gone_;
  std::vector<std::string> to_serve_;
  uint64_t next_id_ = 1;
  uint64_t next_waiter_ = 1;
  uint64_t next_rank_ = 1;
  uint64_t lease_sequence_ = 0;
  std::set<uint64_t> told_leases_;       // numbers; each is given once
  std::set<uint64_t> unseen_hand_outs_;  // before lease_sequence_, in answers that are yet to come
  bool settled_ = false;                 // since all of Advance was done nothing was asked
  bool draining_ = false;
  engine::StatsView counters_;
  std::vector<Expected> answers_;
};

// Two requests under one key are the same request.
bool SameContent(const JobSpec& a, const JobSpec& b);
// Of which stores keep this.
uint64_t FingerprintOf(const JobSpec& spec);
// What a touch repeats.
std::optional<Millis> DelayOf(const JobSpec& spec);

}  // namespace delayd::simulation

// daemon/engine/engine_core.h — the engine's internals, shared by the files that each implement one
// part of a job's life.
//
// A change is decided against memory and applied to it at once. Its rows go into the open batch,
// and every answer that depends on them waits for that batch (PendingChanges::touched). A failed
// commit ends the process, so changes to memory are never rolled back.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/job.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/backlog_cut.h"
#include "daemon/engine/clock_note.h"
#include "daemon/engine/command.h"
#include "daemon/engine/due_range.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/enqueue_plan.h"
#include "daemon/engine/finished_rows.h"
#include "daemon/engine/frontier.h"
#include "daemon/engine/job_ids.h"
#include "daemon/engine/job_table.h"
#include "daemon/engine/key_retention.h"
#include "daemon/engine/lagging_queues.h"
#include "daemon/engine/lease_table.h"
#include "daemon/engine/left_on_disk.h"
#include "daemon/engine/list_page.h"
#include "daemon/engine/located.h"
#include "daemon/engine/low_water_mark.h"
#include "daemon/engine/own_work.h"
#include "daemon/engine/parked_replies.h"
#include "daemon/engine/pending_changes.h"
#include "daemon/engine/queue_table.h"
#include "daemon/engine/ticks.h"
#include "daemon/engine/user_jobs.h"
#include "daemon/engine/waiting_lease.h"
#include "daemon/engine/wall_offsets.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "wheel/timing_wheel.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::engine {

using Body = decltype(Reply::body);
// Out of line: where g++ 12 can inline it, it warns about members that are never there.
Body BodyOf(JobView view);

// The store could not be read: any answer from here on may be wrong, so the engine ends. (An NFS
// may forbid reading a file that is open.)
bool IsReadFailure(const Status& status);

class EngineCore final : public Engine {
 public:
  EngineCore(const EngineOptions& options,
             const storage::JobReader& store,
             uint64_t last_batch,
             const Now& now);

  Status LoadAll(const Progress& progress);

  void Execute(RequestId request, Command command, const Now& now) override;
  bool Advance(const Now& now) override;
  std::optional<Micros> UntilNextEvent(const Now& now) const override;

  bool IsAwaited() const override { return !waiters_.empty(); }

  std::optional<SealedBatch> Seal(const Now& now) override;
  void Durable(uint64_t sequence) override;
  void Committed(uint64_t sequence) override;
  std::vector<Reply> TakeReplies() override;

  void RefuseEnqueues(Status why) override { enqueue_refusal_ = std::move(why); }

  size_t uncommitted_bytes() const override { return pending_.uncommitted_bytes(); }

  const Status& fatal() const override { return fatal_; }

  const Status& enqueue_refusal() const override { return enqueue_refusal_; }

  Status CheckBacklog() const override;

  bool draining() const override { return draining_; }

  bool has_own_work_enough() const override { return own_work_.is_full(); }

  std::vector<Status> TakeIncidents() override;
  StatsView stats() const override;
  EngineFigures Figures(size_t queues_max) const override;

 private:
  friend class MemoryAudit;  // tests/simulation

  // ---- enqueue.cc: new jobs, keys, batches ----
  StatusOr<Body> Do(Enqueue& command);
  Status PlanAll(const std::vector<JobSpec>& specs, std::vector<EnqueuePlan>* to);
  Status PlanKey(const JobSpec& spec, EnqueuePlan* plan);
  Status NameAll(std::vector<EnqueuePlan>* plans, Enqueued* answer);
  void TakeStory(const JobSpec& spec, storage::JobRecord* record) const;
  // `view` is null when the caller does not need it.
  void EnqueueOne(JobSpec& spec, const EnqueuePlan& plan, const std::string& user, JobView* view);
  void ReplaceOne(JobSpec& spec, EnqueuePlan& plan, JobView* view);

  // ---- quota.cc: how many jobs a queue and a user may have ----
  Status CheckQuotas(const Enqueue& command, const std::vector<EnqueuePlan>& plans);
  void PutUserCounts();
  Status LoadUsers();

  // ---- locate.cc: finding a job by its id or key, and reading its record ----
  const Queue* FindIfStored(const std::string& name) const;
  StatusOr<const Queue*> FindStoredQueue(const std::string& name) const;
  // No name: null, which stands for all queues.
  StatusOr<const Queue*> FindStoredQueue(const std::optional<std::string>& name) const;
  StatusOr<Located> Locate(const JobRef& ref);
  StatusOr<Located> LocateId(JobId id);
  Located LocateSlot(Slot slot) const;
  // The state of a pending job that is not in memory.
  StatusOr<JobState> StateOnDisk(WallTime key_due, JobId id) const;
  // The part of its record that tells when it is due.
  StatusOr<storage::TimerHead> ReadHead(WallTime key_due, JobId id) const;
  // A finished job, while it is kept.
  StatusOr<Located> LocateFinished(JobId id, WallTime finished);
  StatusOr<storage::DoneRecord> ReadDone(JobId id, WallTime finished);
  StatusOr<std::optional<storage::KeyRecord>> ReadKey(const Queue& queue, std::string_view key);
  // As ReadKey, but none for an expired key: it stands in nobody's way.
  StatusOr<std::optional<storage::KeyRecord>> FindKey(const Queue& queue, std::string_view key);
  // `more`: about how many due jobs will probably be read next.
  StatusOr<storage::JobRecord> ReadRecord(const Located& located, size_t more = 0);
  Status ReadPayload(storage::JobRecord* record) const;
  // `why`: what stands in the way, and what to do about it.
  Status RefuseState(const Located& located, const JobRef& ref, std::string_view why) const;

  // ---- change.cc: cancel, reschedule and touch ----
  StatusOr<Body> Do(const Cancel& command);
  StatusOr<Body> Do(const CancelIds& command);
  Status CancelOne(const Cancel& command, storage::JobRecord* record);
  StatusOr<Body> Do(const Reschedule& command);
  StatusOr<Body> Do(const Touch& command);
  // Finds a scheduled or ready job and its record. `done`: the verb for a refusal, as in "moved".
  StatusOr<Located> LocateToMove(const JobRef& ref,
                                 const std::vector<std::string>& tags,
                                 const std::string& done,
                                 storage::JobRecord* record);
  Status CheckTag(const Located& located,
                  const storage::JobRecord& record,
                  const JobRef& ref,
                  const std::vector<std::string>& tags) const;
  // These make the change itself, to a job whose state allows it.
  void CancelLocated(const Located& located, storage::JobRecord* record);
  // Whether the move is recorded in the job's story: a watchdog's touches would push out all else.
  enum class Remembered : uint8_t { kYes, kNo };
  JobState MoveLocated(const Located& located,
                       storage::JobRecord* record,
                       const std::optional<DueSpec>& due,
                       std::optional<uint32_t> priority,
                       Remembered remembered);

  // ---- lease.cc: hand-out, waiting ----
  void DoLease(RequestId request, Lease& command);
  void LookUp(Lease* command);
  void Wait(RequestId request, const Lease& command, bool more);
  void DoAbandon(const Abandon& command);
  void DoEndWait(const EndWait& command);
  void TakeBack(Reply* reply);
  Leased HandOut(const WaitingLease& asked);
  bool HasReadyJob(const Queue& queue) const;
  void FindOffers(const WaitingLease& asked);
  // Both append to `out`, as a view is large to move. False: nothing is ready, or cut_short_.
  bool HandOutBest(const WaitingLease& asked, std::vector<JobView>* out);
  Millis LatenessOf(const JobEntry& entry, const storage::JobRecord& record) const;
  Status HandOutSlot(Slot slot, const WaitingLease& asked, std::vector<JobView>* out);
  // Leases a job that is in the table but in no wheel, heap or lease. `record` has its payload.
  JobView Grant(Slot slot,
                storage::JobRecord&& record,
                Millis late,
                const std::optional<Millis>& lease,
                const std::string& client);
  void ServeQueue(Queue& queue);
  RequestId NextToServe(const Queue& queue) const;
  void ServeAll();
  bool IsLookedThrough(const WaitingLease& asked) const;
  void AnswerKept();
  void WaitOver(RequestId request);
  void RemoveWaiter(RequestId request);

  // ---- lease_end.cc: ack, nack, bury, extend, the end of a lease's time ----
  // How a lease ends without an ack.
  struct LeaseEnd {
    storage::JobEvent::Kind how{};
    std::optional<Millis> delay;  // requested by its worker
    std::string_view error;
    std::optional<uint32_t> priority;
    bool counts_as_attempt = true;
  };

  StatusOr<Body> Do(const Ack& command);
  StatusOr<Body> Do(const AckMany& command);
  // `view` is null when the caller does not need the job as it was.
  void AckSlot(Slot slot, JobView* view);
  StatusOr<Body> Do(const Nack& command);
  StatusOr<Body> Do(const Bury& command);
  StatusOr<Body> Do(const Extend& command);
  void KeepForHistory(Slot slot, storage::JobRecord* record);
  StatusOr<Slot> FindLease(const LeaseToken& token) const;

  LeaseInfo& LeaseOf(Slot slot) { return leases_[jobs_[slot].handle]; }

  const LeaseInfo& LeaseOf(Slot slot) const { return leases_[jobs_[slot].handle]; }

  // `view` is null when the caller does not need the job as it is now.
  Status EndLease(Slot slot, const LeaseEnd& end, JobView* view);
  void MoveToDead(Slot slot, const storage::JobRecord& record);
  JobState PutBack(Slot slot, const LeaseEnd& end, storage::JobRecord* record);
  std::optional<Millis> WaitAfter(const storage::JobRecord& record, const LeaseEnd& end) const;
  void NoteLeaseEnd(storage::JobRecord* record, const LeaseEnd& end, std::string_view client);
  void LeaseExpired(Slot slot);
  void Expire(Slot slot, storage::JobRecord record);

  // ---- lease_job.cc: hand-out of one job by name, giving one back untouched ----
  StatusOr<Body> Do(const LeaseJob& command);
  StatusOr<Body> Do(const GiveBack& command);
  void ReturnUntouched(Slot slot);

  // ---- kick.cc: dead and scheduled jobs become ready ----
  StatusOr<Body> Do(const Kick& command);
  StatusOr<Body> Do(const KickQueue& command);
  JobState KickLocated(const Located& located, storage::JobRecord* record);

  // ---- pause.cc: queues that hand nothing out ----
  StatusOr<Body> Do(const Pause& command);
  StatusOr<Body> Do(const Resume& command);
  // Its waiting requests are looked at later, by ServeAll.
  void ServeSoon(Queue& queue);
  void PutQueueRow(const Queue& queue);
  void StartPauseTimer(Queue& queue);
  void EndPause(Queue& queue);
  void Unpause(Queue& queue);
  void RestorePause(Queue& queue, const storage::QueueRecord::Pause& pause);

  // ---- configure.cc: settings of queues, caps ----
  StatusOr<Body> Do(Configure& command);
  const QueueSettings& SettingsFor(const std::string& queue) const;
  void ApplySettings(Queue& queue);
  Queue& FindOrCreateQueue(const std::string& name);
  bool MayHandOut(const Queue& queue) const;
  void WatchRate(Queue& queue);
  void NoteRetentions();

  // ---- peek.cc: the jobs of a queue that come next ----
  StatusOr<Body> Do(const Peek& command);
  WallTime FirstScheduledKey(const Queue& queue) const;
  // Returns at most one job.
  StatusOr<std::vector<Located>> Next(const Queue& queue, Peek::Which which);
  // The first `count` jobs, where `count` is at least one. `after`: begin behind it; null: at the
  // first.
  StatusOr<std::vector<Located>> SoonestScheduled(const Queue& queue,
                                                  size_t count,
                                                  const Located* after);
  StatusOr<std::vector<Located>> OldestDead(const Queue& queue, size_t count, const Located* after);

  // ---- story.cc: what a record remembers of its job's life ----
  void AddEvent(storage::JobRecord* record,
                storage::JobEvent::Kind kind,
                std::string_view who,
                std::string_view what) const;
  void AddLastEvent(storage::JobRecord* record,
                    storage::JobEvent::Kind kind,
                    std::string_view who) const;

  // ---- show.cc: what clients see of one job ----
  StatusOr<Body> Do(const Show& command);
  StatusOr<JobView> ShowLocated(const Located& located, bool with_payload);
  StatusOr<Body> ShowWithPayload(const Located& located);
  JobView ViewOf(const storage::JobRecord& record, JobState state) const;
  JobView ViewOfRecord(const storage::JobRecord& record, JobState state) const;
  void AddLease(const LeaseInfo& lease, JobView* view) const;
  // The due time of a pending job, by the wall clock as it stands now.
  WallTime DueByNow(const storage::JobRecord& record) const;
  JobView FinishedView(const storage::JobRecord& record, bool cancelled) const;
  JobView DoneView(JobId id,
                   WallTime finished,
                   const storage::DoneRecord& done,
                   bool with_payload) const;
  bool IsForgotten(const storage::DoneRecord& done) const;
  Status AddWhole(storage::JobRecord* record, JobView* view) const;

  // ---- scan.cc: the rows that lists and bulk changes go through ----
  // Each of these begins behind a place and ends when the visitor returns false.
  using VisitPlace = std::function<bool(const ListCursor& place)>;
  using VisitDead =
      std::function<bool(const ListCursor& place, std::string_view key, std::string_view value)>;
  // Widens a range of due times as clients see them to the due times that records may hold for
  // them.
  DueRange KeysDue(DueRange range) const;
  Status ScanPending(const DueRange& range,
                     const Queue* queue,
                     const ListCursor& after,
                     const VisitPlace& visit) const;
  // As ScanPending, but for ready jobs and hardly any others.
  Status VisitReady(DueRange range,
                    const Queue* queue,
                    const ListCursor& after,
                    const VisitPlace& visit);
  void VisitLeased(const DueRange& range,
                   const Queue* queue,
                   const ListCursor& after,
                   const VisitPlace& visit) const;
  Status ScanDead(const Queue& queue, const ListCursor& after, const VisitDead& visit);
  Status ScanDeadBefore(std::optional<WallTime> began,
                        const Queue& queue,
                        const ListCursor& after,
                        const VisitPlace& visit);
  void NoteFirstDead(const Queue& queue, std::optional<WallTime> first);

  // ---- list.cc: pages of jobs ----
  StatusOr<Body> Do(const List& command);
  StatusOr<Body> ListPending(const List& command, const Queue* queue);
  bool HasNone(std::optional<JobState> state, const Queue* queue) const;
  StatusOr<storage::JobRecord> DeadRecord(JobId id, std::string_view key, std::string_view value);
  StatusOr<Body> ListDead(const List& command, const Queue* queue);
  StatusOr<Body> ListFinished(const List& command, const Queue* queue);
  // A pending row as a list shows it; none when the filter excludes it.
  StatusOr<std::optional<JobView>> ListedView(const List& command, WallTime key_due, JobId id);

  // ---- figures.cc: queues, counters, what monitoring is told ----
  StatusOr<Body> Do(const ListQueues& command);
  StatusOr<Body> Do(const GetStats& command);
  StatusOr<Body> Do(const Drain& command);
  StatusOr<Body> Do(const AcceptClock& command);
  QueueView ViewOfQueue(const Queue& queue) const;
  void NameQueues(size_t queues_max, EngineFigures* figures) const;
  std::optional<WallTime> NextDue() const;

  // ---- bulk.cc: one step of a bulk change ----
  StatusOr<Body> Do(const ChangeMany& command);
  // Returns whether the job matches; one that does is changed, unless this is a dry run.
  StatusOr<bool> ChangeOneOfMany(const ChangeMany& command,
                                 std::optional<WallTime> fixed,
                                 JobId id,
                                 uint64_t* changed);
  void Change(const ChangeMany& command,
              std::optional<WallTime> fixed,
              const Located& located,
              storage::JobRecord* record);
  bool IsAsAsked(const ChangeMany& command,
                 std::optional<WallTime> fixed,
                 JobState state,
                 const storage::JobRecord& record) const;

  // ---- forecast.cc: how many fall due, and when ----
  StatusOr<Body> Do(const Forecast& command);
  void ForecastNear(const Queue* queue, const Frontier& from, ForecastView* view) const;
  Status ForecastFar(const Queue* queue, ForecastView* view) const;
  void ForecastUnderway(const Queue* queue, ForecastView* view) const;
  // Whether a job in memory waits behind the frontier, where ForecastNear does not count it.
  bool WaitsBehindFrontier(Slot slot, const Frontier& place) const;

  // ---- rows.cc: every put and delete: which rows a change of state touches ----
  // Each puts all rows of one change into the open batch and keeps the counts.
  void PutNewRows(storage::JobRecord* record, WallTime key_due);
  void PutPayload(storage::JobRecord* record);
  void PutLiveKey(const storage::JobRecord& record);
  void PutMovedRows(const storage::JobRecord& record, WallTime old_key_due, WallTime key_due);
  // For a job that is dead no longer.
  void PutRevivedRows(const storage::JobRecord& record, WallTime died, WallTime key_due);
  void PutDeadRows(const storage::JobRecord& record, WallTime key_due, WallTime died);
  void PutFinishedRows(const storage::JobRecord& record,
                       const storage::IndexRecord& place,
                       bool cancelled);
  void PutEnd(const storage::JobRecord& record, bool cancelled);
  void PutDoneRow(const storage::JobRecord& record,
                  WallTime finished,
                  WallTime kept_until,
                  bool cancelled);
  void PutTimerRows(const storage::JobRecord& record, WallTime key_due);
  void DeleteTimerRows(const storage::JobRecord& record, WallTime key_due);
  void PutIndex(const storage::JobRecord& record, storage::IndexRecord::Place place, WallTime at);
  void ChangeDoneCount(Queue& queue, int64_t by);
  void CountChanged(Queue& queue);
  Queue& QueueForNewJob(const std::string& name);
  WallTime KeyDue(WallTime due) const;
  void SetDue(storage::JobRecord* record, const DueSpec& due);
  // The same for a job that had a due time before.
  void MoveDue(storage::JobRecord* record, const DueSpec& due);
  void CloseBatch(bool forget_queues = false);
  WallTime ComputeLowWaterMark();

  // What happens to a job that is due already when it is placed.
  enum class Overdue : uint8_t { kReadyAtOnce, kThroughTheWheel };

  // ---- horizon.cc: which jobs are in memory, and which on disk only ----
  bool IsNear(const Queue& queue, WallTime key_due, JobId id) const {
    return Frontier(key_due, id) < queue.frontier.value_or(frontier_);
  }

  // Called after a job's rows were put: takes the job into memory or out of it. Returns its state.
  JobState Settle(const storage::JobRecord& record, WallTime key_due, std::optional<Slot> slot);
  WallTime LatestKeyOfNow() const;
  WallTime FirstKeyNotDue() const;
  void SlideFrontier();
  // Loads one page for the lagging queues and one for the common window, as needed. Returns whether
  // to load more right away.
  bool LoadAhead();
  bool LoadNextPage();
  Status LoadPage(WallTime target, Overdue overdue);
  WallTime FirstRowFrom(const Frontier& place) const;

  // Whether jobs that are due may lie on disk because the frontier has fallen behind.
  bool IsBehind() const { return frontier_.first <= LatestKeyOfNow(); }

  bool DropFarthest(size_t keep);  // false: what is left is due, and still too many
  void DropWhatIsFar();
  void Sweep();
  bool DropIfFar(Slot slot);
  std::optional<Millis> UntilLoad(const Now& now) const;

  bool IsDroppable(Slot slot) const {
    const Phase phase = jobs_[slot].phase();
    return phase == Phase::kScheduled || phase == Phase::kReady;
  }

  // ---- backlog.cc: queues with more ready jobs than memory has room for ----
  // How many scheduled and ready jobs may be in memory, beside the jobs that must be there.
  size_t HeldMax() const;

  bool HasRoom() const { return held_ < HeldMax(); }

  bool CanMakeRoom() const;
  void MakeRoom(size_t keep);
  void CutBacklogs(size_t keep);
  void GoOnCutting();
  void LeaveBacklogs();
  bool LoadLagging();
  Status LoadQueuePage(Queue& queue, size_t rows_max);
  Status LoadQueueRow(const Frontier& place);
  bool LeaveIfItWaits(const JobEntry& entry);
  void ReturnToLeft();
  size_t ShareOfLagging() const;
  size_t RowsWanted(const Queue& queue, size_t share) const;
  bool HasPlentyOfRoom() const;
  bool RestHasRoom() const;
  bool LaggingWant() const;
  bool LaggingAsk() const;

  // Whether the sweep will drop the job from memory; older jobs of its queue may be gone already.
  bool IsLeftBehind(const JobEntry& entry) const;
  // No job that is on disk only is keyed before this.
  WallTime FirstOnDisk() const;

  // ---- forgotten_queues.cc: queues of which only the name is left ----
  void NoteEmpty(Queue& queue);
  void ForgetQueues();

  // ---- turn.cc: time: fire, end leases, seal, answer ----
  void SetNow(const Now& now);
  void NoteClock();
  std::optional<Millis> UntilClockNote(const Now& now) const;
  std::optional<Micros> UntilNextTimer(const Now& now) const;
  void Answer(RequestId request, StatusOr<Body> result);

  Moment MomentOf(const DueTimes& due) const;
  // Of a scheduled job in memory.
  Moment MomentOfTimer(const JobEntry& entry) const;
  WallTime FirstKeyInWheels() const;
  // Puts a job that is in the table where its due time says: into a wheel, or among the ready ones.
  void Place(Slot slot, const storage::JobRecord& record);
  void Place(Slot slot, const DueTimes& due, Overdue overdue);
  void Hold(const JobEntry& entry);
  void LetGo(Queue& queue);
  void MakeReady(Slot slot);
  // Takes a job out of wheel, ready heap or lease; its entry stays.
  void Unplace(Slot slot);
  void Forget(Slot slot);
  void Fire(uint64_t timer_id);
  size_t PopDue(wheel::TimingWheel& wheel, wheel::Tick now, size_t bound);
  bool PopBootWheel(size_t* room);
  bool PopLeases();
  void RebuildWallWheel();
  void WaitAgain(Slot slot);
  WallTime DueOfEntry(const JobEntry& entry);
  void Die(Status status);
  void Damaged(Slot slot, const Status& status);
  void NoteDamaged(Queue& queue, const Status& status);

  // ---- trim.cc: finished jobs are forgotten ----
  Status TrimFinished();
  Status ForgetFinished(JobId id, std::string_view key, const storage::DoneRecord& done);

  // ---- load.cc: rebuilds memory from the store ----
  Status LoadMeta();
  Status LoadQueues();
  StatusOr<std::vector<QueueId>> LoadCounts();
  Status LoadWindow(const Progress& progress);
  Status LoadTimer(const storage::TimerKeyParts& parts,
                   std::string_view key,
                   std::string_view value,
                   Overdue overdue);
  Status LoadDamaged(const storage::TimerKeyParts& parts, const Status& why);
  void LoadOwn(const storage::TimerKeyParts& parts,
               std::string_view key,
               std::string_view value,
               Overdue overdue);
  Status CheckCounts();

  EngineOptions options_;
  const storage::JobReader& store_;
  PendingChanges pending_;

  // ---- time ----
  Now now_;
  Now advanced_to_;        // when Advance last ran: what has fired was due then
  WallTime advanced_key_;  // no job that was due then is keyed behind this
  KeyRetention key_retention_;
  ClockNote clock_note_;
  WallOffsets wall_offsets_;
  uint64_t boot_id_ = 0;  // never 0 once loaded

  // ---- jobs in memory, and what they wait for ----
  JobTable jobs_;
  QueueTable queues_;
  wheel::TimingWheel boot_wheel_;   // relative due times, ends of waits and pauses
  wheel::TimingWheel lease_wheel_;  // ends of leases, which wait for commits
  wheel::TimingWheel wall_wheel_;   // absolute due times
  LeaseTable leases_;
  uint64_t epoch_ = 0;
  uint64_t lease_sequence_ = 0;
  OwnWork own_work_;
  size_t fired_count_ = 0;  // ready, leased and damaged
  // The keys of those jobs, and of the jobs that wait: no job is keyed before the low-water mark.
  FiredKeys fired_;
  BootOffsets boot_offsets_;
  LowWaterMark low_water_mark_;

  // ---- where memory ends: horizon.cc, backlog.cc ----
  // A job that is only on disk is in one of three places: at or behind the frontier of its queue,
  // if that lags; else at or behind the common frontier, keyed at far_begins_ or later; or before
  // these, in left_on_disk_. Loads begin there, so a job anywhere else would never be loaded.
  Frontier frontier_;
  WallTime far_begins_ = kNothingFar;
  LaggingQueues lagging_;
  LeftOnDisk left_on_disk_;
  size_t held_ = 0;                  // scheduled and ready jobs in memory
  bool loading_ = false;             // the frontier is on its way to the horizon
  size_t pages_behind_ = 0;          // loaded since the frontier was last ahead of the clocks
  bool made_room_ = false;           // for the next page, which was not loaded yet
  std::unique_ptr<BacklogCut> cut_;  // under way; the sweep of the table follows
  std::optional<Slot> sweep_;        // how far the sweep for jobs behind a frontier has got
  bool leaves_waiting_ = false;  // the sweep also drops jobs that are keyed before now and not due

  // ---- requests that wait for jobs: lease.cc ----
  boost::unordered_flat_map<RequestId, WaitingLease> waiters_;
  std::vector<RequestId> kept_;  // those whose wait may end before their queues are looked through
  std::vector<QueueId> to_serve_;
  bool cut_short_ = false;   // the last hand-out passed over too many jobs to look at all of them
  size_t passed_over_ = 0;   // ready jobs in this turn that could not be handed out
  size_t served_bytes_ = 0;  // handed out since ServeAll began
  size_t left_names_ = 0;    // queue names of requests that stopped waiting, in this turn

  // ---- what the engine itself adds to the open batch ----
  JobIds job_ids_;
  size_t open_jobs_ = 0;  // jobs changed in it
  std::vector<QueueId> counts_changed_;
  UserJobs user_jobs_;
  std::list<QueueId> empty_queues_;  // in the order in which they became so
  size_t newly_empty_ = 0;           // since some were forgotten
  FinishedRows finished_rows_;

  // ---- answers ----
  ParkedReplies parked_;
  std::vector<Reply> ready_replies_;
  std::vector<Status> incidents_;
  Status fatal_;
  Status enqueue_refusal_;  // OK: enqueues are taken
  bool draining_ = false;
  StatsView counters_;
  Histogram lateness_ms_{kLatenessBoundsMs};

  // ---- scratch of the current call, kept so that its memory is reused ----
  std::vector<wheel::Expired> popped_ = std::vector<wheel::Expired>(limits::kFireBatchMax);
  WaitingLease asked_;
  std::vector<Queue*> offers_;  // for the hand-out: a heap of queues with ready jobs
  std::vector<EnqueuePlan> plans_;
  std::string row_value_;
  std::string row_read_;
};

}  // namespace delayd::engine

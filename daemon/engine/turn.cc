// Time and turns: what fires, where jobs are placed, when batches are sealed and answers released.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/timer_id.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// How far ahead of the clock the wall wheel may be: timers that are due within so short a time are
// in order in the wheel's heap, too.
constexpr wheel::Tick kWheelWaitsMs = 60'000;

// Only the index, half of a timer's handle, is kept: the caller must know that the timer is still
// there.
void CancelTimer(wheel::TimingWheel& wheel, uint32_t timer) {
  const bool cancelled = wheel.Cancel(wheel.HandleAt(timer));
  DELAYD_CHECK(cancelled);
}

}  // namespace

void EngineCore::Execute(RequestId request, Command command, const Now& now) {
  if (!fatal_.ok()) {
    return;
  }
  SetNow(now);
  SlideFrontier();
  pending_.BeginAccess();
  if (auto* lease = std::get_if<Lease>(&command)) {
    DoLease(request, *lease);
  } else if (const auto* abandon = std::get_if<Abandon>(&command)) {
    DoAbandon(*abandon);
  } else if (const auto* end = std::get_if<EndWait>(&command)) {
    DoEndWait(*end);
  } else {
    std::visit(
        [this, request](auto& one) {
          using One = std::decay_t<decltype(one)>;
          if constexpr (!std::is_same_v<One, Lease> && !std::is_same_v<One, Abandon> &&
                        !std::is_same_v<One, EndWait>) {
            Answer(request, Do(one));
          }
        },
        command);
  }
  queues_.RemoveUnused();
  if (pending_.open_is_full(open_jobs_)) {
    CloseBatch();
  }
}

void EngineCore::SetNow(const Now& now) {
  DELAYD_CHECK(now.exact_boot() >= now_.exact_boot());
  now_ = now;
  key_retention_.See(now);
  clock_note_.See(now);
}

// Opens a batch if none is open; CloseBatch adds what else belongs in it.
void EngineCore::NoteClock() {
  pending_.Put(Table::kMeta,
               storage::kClockKey,
               storage::EncodeClockRecord(
                   storage::kClockKey,
                   {.wall = clock_note_.highest(), .boot_id = boot_id_, .boot = now_.boot}));
  clock_note_.Noted(now_.boot);
}

// None while no job waits for its time: then a wrong clock can do no harm.
std::optional<Millis> EngineCore::UntilClockNote(const Now& now) const {
  if (options_.clock_note_interval == Millis(0) ||
      (jobs_.size() == 0 && FirstOnDisk() == kNothingFar)) {
    return std::nullopt;
  }
  return clock_note_.UntilAge(options_.clock_note_interval, now.boot);
}

void EngineCore::Answer(RequestId request, StatusOr<Body> result) {
  if (!fatal_.ok()) {
    return;  // what could not be read may have made it wrong
  }
  Reply reply{.request = request, .sequence = std::max(pending_.touched(), pending_.committed())};
  if (result.ok()) {
    reply.body = std::move(result).value();
  } else {
    reply.status = result.status();
    if (IsReadFailure(reply.status)) {
      Die(reply.status);
    }
  }
  if (reply.sequence > pending_.committed()) {
    parked_.Park(std::move(reply));
  } else {
    ready_replies_.push_back(std::move(reply));
  }
}

void EngineCore::Place(Slot slot, const storage::JobRecord& record) {
  Place(slot, DueOf(record), Overdue::kReadyAtOnce);
}

void EngineCore::Place(Slot slot, const DueTimes& due, Overdue overdue) {
  JobEntry& entry = jobs_[slot];
  const Moment moment = MomentOf(due);
  entry.set_on_boot_clock(moment.on_boot_clock);
  Hold(entry);
  if (moment.IsOver(now_) && overdue == Overdue::kReadyAtOnce) {
    MakeReady(slot);
    return;
  }
  entry.set_phase(Phase::kScheduled);
  if (moment.on_boot_clock) {
    boot_offsets_.Add(due.wall.time_since_epoch() - due.boot.time_since_epoch(), moment.tick);
  }
  wheel::TimingWheel& wheel = moment.on_boot_clock ? boot_wheel_ : wall_wheel_;
  entry.handle = wheel::IndexOf(wheel.Add(moment.tick, TimerIdOfJob(slot)));
}

Moment EngineCore::MomentOf(const DueTimes& due) const {
  if (due.IsOnBootClock(boot_id_)) {
    return {.on_boot_clock = true,
            .tick = BootTick(due.boot) - static_cast<wheel::Tick>(due.rounded_up.count())};
  }
  // boot_due includes the same rounding.
  const Millis rounding = due.kind == DueKind::kRelative ? kClockRounding : Millis(0);
  return {.on_boot_clock = false, .tick = WallTick(due.wall + rounding)};
}

// No scheduled job in memory is keyed before this.
WallTime EngineCore::FirstKeyInWheels() const {
  WallTime first = kNothingFar;
  // A job in the wall wheel is keyed at its due time or later, and waits at most kClockRounding
  // longer.
  if (const wheel::Tick next = wall_wheel_.NextExpiration(); next != wheel::kNever) {
    first = WallTimeOf(next) - kClockRounding;
  }
  // A job in the boot wheel is keyed at its due time by the wall clock as it stood when the delay
  // was promised, which is not before this.
  const wheel::Tick next_boot = boot_wheel_.NextExpiration();
  if (const std::optional<Millis> least = boot_offsets_.Least(next_boot)) {
    first = std::min(first, WallTime(BootTimeOf(next_boot).time_since_epoch()) + *least);
  }
  return first;
}

Moment EngineCore::MomentOfTimer(const JobEntry& entry) const {
  const wheel::TimingWheel& wheel = entry.on_boot_clock() ? boot_wheel_ : wall_wheel_;
  const auto due = wheel.Due(wheel.HandleAt(entry.handle));
  DELAYD_CHECK(due.has_value());
  return {.on_boot_clock = entry.on_boot_clock(), .tick = *due};
}

// From now on the job is scheduled or ready, and in memory.
void EngineCore::Hold(const JobEntry& entry) {
  Queue& queue = queues_[entry.queue()];
  ++queue.held;
  ++held_;
  lagging_.NoteHeld(&queue, 1);
}

void EngineCore::LetGo(Queue& queue) {
  --queue.held;
  --held_;
  lagging_.NoteHeld(&queue, -1);
}

void EngineCore::MakeReady(Slot slot) {
  JobEntry& entry = jobs_[slot];
  Queue& queue = queues_[entry.queue()];
  entry.set_phase(Phase::kReady);
  entry.handle = queue.ready.Add(
      {.key_due = entry.key_due(), .id = entry.id(), .priority = entry.priority(), .slot = slot});
  lagging_.NoteReady(&queue);
  fired_.Add(entry.key_due(), slot);
  ++fired_count_;
  queues_.CountUrgent(&queue, entry.priority() < limits::kPriorityDefault ? 1 : 0);
  ServeSoon(queue);
}

void EngineCore::Unplace(Slot slot) {
  JobEntry& entry = jobs_[slot];
  Queue& queue = queues_[entry.queue()];
  switch (entry.phase()) {
    case Phase::kFree:
      DELAYD_CHECK(false);
      break;
    case Phase::kScheduled:
      LetGo(queue);
      CancelTimer(entry.on_boot_clock() ? boot_wheel_ : wall_wheel_, entry.handle);
      break;
    case Phase::kReady:
      LetGo(queue);
      queue.ready.Remove(entry.handle);
      lagging_.NoteNotReady(&queue);
      queues_.CountUrgent(&queue, entry.priority() < limits::kPriorityDefault ? -1 : 0);
      --fired_count_;
      break;
    case Phase::kLeased:
      if (const uint32_t timer = leases_[entry.handle].timer; timer != LeaseInfo::kFired) {
        CancelTimer(lease_wheel_, timer);
      }
      leases_.Remove(entry.handle);
      --queue.leased;
      --fired_count_;
      if (queue.settings.concurrency != 0) {
        ServeSoon(queue);
      }
      break;
    case Phase::kDamaged:
      --queue.damaged;
      --fired_count_;
      break;
  }
}

void EngineCore::Forget(Slot slot) {
  Unplace(slot);
  jobs_.Remove(slot);
}

void EngineCore::Damaged(Slot slot, const Status& status) {
  Unplace(slot);
  jobs_[slot].set_phase(Phase::kDamaged);
  NoteDamaged(queues_[jobs_[slot].queue()], status);
}

void EngineCore::NoteDamaged(Queue& queue, const Status& status) {
  ++queue.damaged;
  ++fired_count_;
  ++counters_.damaged;
  incidents_.push_back(status);
}

void EngineCore::Die(Status status) {
  if (fatal_.ok()) {
    fatal_ = std::move(status);
  }
}

void EngineCore::Fire(uint64_t timer_id) {
  if ((timer_id & kWaiterBit) != 0) {
    DoEndWait({.waiting = timer_id & ~kWaiterBit});
    return;
  }
  if ((timer_id & kPauseBit) != 0) {
    Unpause(queues_[static_cast<QueueId>(timer_id & ~kPauseBit)]);
    return;
  }
  if ((timer_id & kRateBit) != 0) {
    Queue& queue = queues_[static_cast<QueueId>(timer_id & ~kRateBit)];
    queue.rate_timer.reset();
    ServeSoon(queue);
    return;
  }
  const auto slot = static_cast<Slot>(timer_id);
  if (jobs_[slot].phase() == Phase::kLeased) {
    LeaseOf(slot).timer = LeaseInfo::kFired;
    LeaseExpired(slot);
    return;
  }
  DELAYD_CHECK(jobs_[slot].phase() == Phase::kScheduled);
  ++counters_.fired;
  MakeReady(slot);
  if (sweep_) {
    DropIfFar(slot);  // jobs before it may have been dropped already, and come back with it
  }
}

size_t EngineCore::PopDue(wheel::TimingWheel& wheel, wheel::Tick now, size_t bound) {
  const std::span<wheel::Expired> room(popped_.data(), bound);
  const size_t count = wheel.PopDue(now, room);
  for (size_t i = 0; i < count; ++i) {
    DELAYD_CHECK(popped_[i].due <= now);  // never early (P2)
    Fire(popped_[i].id);
  }
  return count;
}

// Fires jobs and ends waits; the end of a wait takes a step for each queue that the request names.
// Returns whether there may be more.
bool EngineCore::PopBootWheel(size_t* room) {
  left_names_ = 0;
  while (*room > 0 && left_names_ < limits::kLeftNamesMax) {
    const size_t bound = std::min(*room, limits::kFireWaitsMax);
    const size_t popped = PopDue(boot_wheel_, BootTick(now_.exact_boot()), bound);
    *room -= popped;
    if (popped < bound) {
      return false;
    }
  }
  return true;
}

// Ends leases whose time is over. Each end is written, so many of them have to wait for commits;
// jobs that fall due do not wait behind them. Returns whether there may be more that need not wait.
bool EngineCore::PopLeases() {
  const wheel::Tick now = BootTick(now_.exact_boot());
  const auto time = [this] { return options_.stopwatch ? options_.stopwatch() : Millis(0); };
  const Millis end = time() + Millis(limits::kOwnWorkMs);
  for (size_t popped = 0; popped < limits::kFireBatchMax; popped += limits::kFireStepMax) {
    if (own_work_.is_full() || PopDue(lease_wheel_, now, limits::kFireStepMax) == 0) {
      return false;
    }
    // Not while popped timers are in no wheel: closing a batch computes the low-water mark from the
    // wheels.
    if (pending_.open_is_full(open_jobs_)) {
      CloseBatch();
    }
    if (time() >= end) {
      break;
    }
  }
  return !own_work_.is_full();
}

bool EngineCore::Advance(const Now& now) {
  if (!fatal_.ok()) {
    return false;
  }
  SetNow(now);
  const bool wall_is_set_back = now.wall < advanced_to_.wall;
  advanced_to_ = now;
  advanced_key_ = LatestKeyOfNow();
  if (UntilClockNote(now) == Millis(0)) {
    NoteClock();
  }
  if (wall_is_set_back) {
    RebuildWallWheel();
  }
  // Before the wheels: jobs that are loaded late fire in the order of their due times, among the
  // others.
  const bool more_to_load = LoadAhead();
  size_t room = limits::kFireBatchMax;
  const bool more_on_boot_clock = PopBootWheel(&room);
  if (room > 0) {
    room -= PopDue(wall_wheel_, WallTick(now.wall), room);
  }
  const bool more_leases = PopLeases();
  ServeAll();
  queues_.RemoveUnused();
  if (pending_.open_is_full(open_jobs_)) {
    CloseBatch();
  }
  if (finished_rows_.TakeTrim(now)) {
    if (const Status trimmed = TrimFinished(); !trimmed.ok()) {
      Die(trimmed);
    }
  }
  // A request that was served may have taken the last job of a queue that has more on disk.
  return room == 0 || more_on_boot_clock || more_to_load || more_leases || LaggingWant() ||
         (!to_serve_.empty() && !own_work_.is_full());
}

// The wall clock was set back. If only by a little, the wheel waits until time has caught up.
// Further back its hand cannot follow, and a new wheel takes the timers over, which takes a quarter
// of a second for a million. Jobs that have fired and are no longer due wait again (P2).
void EngineCore::RebuildWallWheel() {
  const wheel::Tick now = WallTick(now_.wall);
  if (wall_wheel_.current_tick() > now + kWheelWaitsMs) {
    const wheel::TimingWheel old = std::exchange(wall_wheel_, wheel::TimingWheel(now));
    for (Slot slot = 0; slot < jobs_.slot_count(); ++slot) {
      JobEntry& entry = jobs_[slot];
      if (entry.phase() == Phase::kScheduled && !entry.on_boot_clock()) {
        const auto due = old.Due(old.HandleAt(entry.handle));
        DELAYD_CHECK(due.has_value());
        entry.handle = wheel::IndexOf(wall_wheel_.Add(*due, TimerIdOfJob(slot)));
      }
    }
  }
  std::vector<Slot> early;
  queues_.ForEach([&](const Queue& queue) {
    queue.ready.ForEach([&](const ReadyJob& job) {
      if (job.key_due > now_.wall && !jobs_[job.slot].on_boot_clock()) {
        early.push_back(job.slot);
      }
    });
  });
  for (const Slot slot : early) {
    WaitAgain(slot);
  }
}

void EngineCore::WaitAgain(Slot slot) {
  JobEntry& entry = jobs_[slot];
  const WallTime due = DueOfEntry(entry) + kClockRounding;
  if (due <= now_.wall) {
    return;
  }
  Unplace(slot);
  Hold(entry);
  entry.set_phase(Phase::kScheduled);
  entry.handle = wheel::IndexOf(wall_wheel_.Add(WallTick(due), TimerIdOfJob(slot)));
}

// The due time on the wall clock. key_due is never before it, and later only where the low-water
// mark was ahead of it: then the record is read. A damaged one is noticed at hand-out.
WallTime EngineCore::DueOfEntry(const JobEntry& entry) {
  if (entry.key_due() > low_water_mark_.decided()) {
    return entry.key_due();
  }
  const StatusOr<storage::TimerHead> head = ReadHead(entry.key_due(), entry.id());
  if (IsReadFailure(head.status())) {
    Die(head.status());
  }
  return head.ok() ? head->due : entry.key_due();
}

std::optional<Micros> EngineCore::UntilNextTimer(const Now& now) const {
  std::optional<Micros> wait;
  const auto consider = [&wait](Micros until) {
    wait = std::min(wait.value_or(Micros::max()), std::max(until, Micros(0)));
  };
  const auto consider_boot = [&](wheel::Tick next) {
    if (next != wheel::kNever) {
      consider(Micros(static_cast<int64_t>(next)) - now.exact_boot().time_since_epoch());
    }
  };
  consider_boot(boot_wheel_.NextExpiration());
  if (!own_work_.is_full()) {
    consider_boot(lease_wheel_.NextExpiration());
  }
  if (const wheel::Tick next = wall_wheel_.NextExpiration(); next != wheel::kNever) {
    consider(WallTimeOf(next) - now.wall - now.wall_rest);
  }
  return wait;
}

std::optional<Micros> EngineCore::UntilNextEvent(const Now& now) const {
  std::optional<Micros> wait = UntilNextTimer(now);
  // Counted from the beginning of the millisecond, so that it is the same moment whenever it is
  // asked for.
  const auto consider = [&](Millis until) {
    wait = std::min(wait.value_or(Micros::max()), std::max(until - now.boot_rest, Micros(0)));
  };
  if (const std::optional<Millis> load = UntilLoad(now)) {
    consider(*load);
  }
  if (const std::optional<Millis> note = UntilClockNote(now)) {
    consider(*note);
  }
  if (const std::optional<BootTime>& trim = finished_rows_.next_trim()) {
    consider(*trim - now.boot);
  }
  return wait;
}

std::optional<SealedBatch> EngineCore::Seal(const Now& now) {
  if (!fatal_.ok()) {
    return std::nullopt;
  }
  std::optional<SealedBatch> sealed = pending_.TakeClosed();
  if (!sealed && !pending_.open_is_empty()) {
    SetNow(now);
    CloseBatch(/*forget_queues=*/true);
    sealed = pending_.TakeClosed();
  }
  return sealed;
}

void EngineCore::Durable(uint64_t sequence) {
  parked_.Release(sequence, &ready_replies_);
}

void EngineCore::Committed(uint64_t sequence) {
  pending_.Committed(sequence);
  own_work_.Committed(sequence);
  ++counters_.commits;
  low_water_mark_.Committed(sequence);
  finished_rows_.Committed(sequence);
  Durable(sequence);
}

std::vector<Reply> EngineCore::TakeReplies() {
  return std::exchange(ready_replies_, {});
}

std::vector<Status> EngineCore::TakeIncidents() {
  return std::exchange(incidents_, {});
}

}  // namespace delayd::engine

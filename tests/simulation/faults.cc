// What goes wrong: the clock, the power, the process.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/limits.h"
#include "tests/simulation/simulation.h"

namespace delayd::simulation {

using std::chrono::hours;

void Simulation::SetWallClock() {
  int64_t by = choices_.Magnitude(choices_.OneIn(2) ? 14 : 33);
  if (wall_steps_back_ && choices_.OneIn(2)) {
    by = -std::min(by, ToMillis(clock_.Sample().wall) - 1);
  }
  clock_.StepWall(Millis(by));
  ++result_.clock_steps;
  Trace("wall clock set by " + std::to_string(by));
  // Commands may come before the turn that notices, where that does not depend on what is in
  // memory.
  if (little_memory_ || choices_.OneIn(2)) {
    Advance();
  }
}

// The operator, or the kernel: the clock is right.
void Simulation::AcceptClock() {
  Trace("clock accepted");
  watch_->Accept(clock_.Sample());
  Execute(engine::AcceptClock{});
  if (little_memory_) {
    Advance();
  }
}

// The daemon is told that new jobs have no room, or have it again.
void Simulation::FillDisk() {
  const bool full = choices_.OneIn(4);
  Trace(full ? "the disk is nearly full" : "there is room on the disk");
  engine_->RefuseEnqueues(full ? ResourceExhausted("as simulated", "disk_nearly_full")
                               : OkStatus());
  oracle_->RefusesEnqueues(full);
}

void Simulation::Suspend() {
  const Micros by = Millis(choices_.Magnitude(30)) + Fraction();
  clock_.Advance(by);
  result_.simulated += by;
  ++result_.suspends;
  Trace("suspended for " + std::to_string(by.count()));
  if (little_memory_ || choices_.OneIn(2)) {
    Advance();
  }
}

// The process is gone. In the middle of a commit the first batch under way may have reached the
// disk; nothing else did.
void Simulation::Kill(bool in_commit) {
  size_t kept = 0;
  if (in_commit && !sealed_.empty()) {
    kept = choices_.Below(2);
    store_.FailNextCommit(/*keep_batch=*/kept != 0);
    const Status committed = store_.Commit(*sealed_.front().batch);
    if (committed.ok()) {
      result_.violation = "P1: a failed commit is reported as done";
    }
    store_.Reopen();
  }
  Trace(std::string("killed, batches kept: ") + std::to_string(kept));
  ++result_.kills;
  engine_.reset();
  result_.clock_suspicions += watch_->suspicions();
  watch_.reset();
  sealed_.clear();
  workload_->Disconnected();
  oracle_->Crashed(kept);
}

// A start reads the configuration as it is by then: as the last reload had it, or edited since.
void Simulation::EditFile() {
  if (!edits_file_) {
    return;
  }
  if (choices_.OneIn(3)) {
    file_ = workload_->Settings();
    DrawMemory();
    options_.payload_bytes_max = choices_.OneIn(4) ? 1500 : limits::kPayloadBytesDefaultMax;
    ++result_.edits;
    Trace("the configuration is edited");
  }
  options_.defaults = file_.defaults;
  options_.queues = file_.queues;
}

void Simulation::Crash() {
  if (choices_.OneIn(2)) {
    Seal();
  }
  Kill(choices_.OneIn(2));
  oracle_->CheckRows(store_);
  const Micros down = Millis(choices_.OneIn(3) ? choices_.Magnitude(28) : 0) + Fraction();
  clock_.Advance(down);
  result_.simulated += down;
  EditFile();
  Start();
}

void Simulation::Reboot() {
  Kill(choices_.OneIn(2));
  oracle_->CheckRows(store_);
  const Millis off(choices_.Magnitude(31));
  WallTime wall = now().wall + off;
  if (choices_.OneIn(5)) {  // it comes up with a wrong clock
    const int64_t wrong = choices_.Magnitude(38);
    wall += Millis(wall_steps_back_ && choices_.OneIn(2)
                       ? -std::min(wrong, ToMillis(wall) - 1)
                       : std::min(wrong, 4'000'000'000'000 - ToMillis(wall)));
    wall = std::max(wall, wall_steps_back_ ? WallFromMillis(1) : now().wall + off);
  }
  clock_ =
      SimulatedClock(WithFractions({.wall = wall, .boot = BootFromMillis(choices_.Magnitude(20))}));
  result_.simulated += off;
  ++result_.reboots;
  ++boots_;
  options_.boot_id = options_.boot_id == 0 ? 0 : boots_;
  Trace("rebooted");
  EditFile();
  Start();
}

// A backup is made; or the last one is put back, and everything since then has not been.
void Simulation::CopyOrPutBack() {
  if (copy_ && !choices_.OneIn(3)) {
    PutBack();
    return;
  }
  CommitAll();
  Collect();
  if (const auto noted = NotedClock(); noted && !failed()) {
    copy_.emplace(Copy{.store = store_, .oracle = *oracle_, .noted = noted->wall});
    Trace("the store is copied");
  }
}

// Under the same boot, or after another.
void Simulation::PutBack() {
  Kill(/*in_commit=*/false);
  store_ = copy_->store;
  *oracle_ = copy_->oracle;
  oracle_->Crashed(0);
  // No start takes less than the time for the ids of a block; and in one moment of a simulation
  // there may be many batches.
  clock_.Advance(Millis(1000 + 11 * std::exchange(starts_, 0)));
  if (choices_.OneIn(2)) {
    clock_ = SimulatedClock(
        WithFractions({.wall = now().wall, .boot = BootFromMillis(choices_.Magnitude(20))}));
    ++boots_;
    options_.boot_id = options_.boot_id == 0 ? 0 : boots_;
  }
  ++result_.restores;
  Trace("an older copy of the store is put back");
  EditFile();
  WatchClock();
  // docs/decisions/0106: the promise goes with a wall clock that was set back since, and in full it
  // reaches over a year, or two months where the clock is held.
  const WallTime wall = clock_.Sample().wall;
  const bool held = wall != now().wall;
  if (wall <= highest_wall_ || wall - copy_->noted > hours(24 * 365) ||
      (held && wall - now().wall > hours(24 * 60))) {
    given_ids_.clear();
    given_leases_.clear();
  }
  Start();
}

// No id and no lease token is given out twice, whatever store was put back between.
void Simulation::NoteGiven(const engine::Reply& reply) {
  const auto note_job = [this](JobId id, bool existed) {
    if (!existed && !given_ids_.insert(id).second) {
      result_.violation = "P4: id " + std::to_string(ToInt(id)) + " was given out in another life";
    }
  };
  if (const auto* enqueued = std::get_if<engine::Enqueued>(&reply.body)) {
    for (const auto& item : enqueued->items) {
      note_job(item.job.id, item.existed);
    }
  } else if (const auto* ids = std::get_if<engine::EnqueuedIds>(&reply.body)) {
    for (const auto& item : ids->items) {
      note_job(item.id, item.existed);
    }
  } else if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
    for (const JobView& job : leased->jobs) {
      const LeaseToken& token = *job.lease_token;
      if (!given_leases_.emplace(token.job, token.epoch, token.sequence).second) {
        result_.violation = "P6: the lease token of job " + std::to_string(ToInt(token.job)) +
                            " was given out in another life";
      }
    }
  }
}

}  // namespace delayd::simulation

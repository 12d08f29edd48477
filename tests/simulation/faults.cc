// What goes wrong: the clock, the power, the process.
#include <algorithm>

#include "base/limits.h"
#include "tests/simulation/simulation.h"

namespace delayd::simulation {

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

}  // namespace delayd::simulation

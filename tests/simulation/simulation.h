// tests/simulation/simulation.h — one simulated daemon: engine, clocks, disk, clients, and
// everything that can go wrong.
//
// What:    Run lives one run through, from one seed (or the bytes of a fuzzer). Time does not pass,
// it is skipped: to the
//          next event, just before it, or far beyond. Between any two calls of the engine the
//          process may be killed, the machine rebooted or suspended, the wall clock set.
// Errors:  Result::violation, empty when every check held; engine and oracle never disagree in
// silence. Threads: one. The same source of choices gives the same run, to the bit.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include "base/clock.h"
#include "daemon/engine/clock_watch.h"
#include "daemon/engine/command.h"
#include "daemon/engine/engine.h"
#include "storage/memory_job_store.h"
#include "tests/simulation/choices.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/workload.h"

namespace delayd::simulation {

struct Result {
  std::string violation;
  uint64_t step = 0;                           // of the violation, else the number of steps
  uint64_t trace = 0;                          // a hash of every batch and every answer
  std::chrono::duration<double> simulated{0};  // many lives are more than 292,000 years
  uint64_t commands = 0;
  std::array<uint64_t, std::variant_size_v<engine::AnyCommand>> of_kind{};  // commands
  uint64_t answers = 0;
  uint64_t hand_outs = 0;
  uint64_t commits = 0;
  uint64_t kills = 0;
  uint64_t reboots = 0;
  uint64_t clock_steps = 0;
  uint64_t suspends = 0;
  uint64_t clock_suspicions = 0;
  uint64_t edits = 0;                        // of the configuration, before a start
  uint64_t restores = 0;                     // of an older copy of the store
  uint64_t unfinished = 0;                   // moments that were left before all was done
  std::map<std::string, uint64_t> refusals;  // by reason

  void Add(const Result& other);
};

class Simulation {
 public:
  explicit Simulation(Choices choices);

  Result Run(uint64_t steps);

  // Prints every input, fault and answer to stderr.
  void set_verbose(bool verbose) { verbose_ = verbose; }

 private:
  void Step();
  void Command();
  void PassTime();
  void SetWallClock();
  void AcceptClock();
  void FillDisk();
  void EditFile();
  void DrawOptions();
  void DrawHabits();
  void DrawMemory();
  void Suspend();
  void Crash();
  void Reboot();
  void CopyOrPutBack();
  void PutBack();
  void NoteGiven(const engine::Reply& reply);
  void Start();
  void Advance();
  bool AdvanceOnce();
  bool Seal();
  bool CommitOne();
  void CommitAll();
  void SealWhatMustBeSeen();
  void Collect();
  void CollectOrNot();
  void LearnHandOuts();
  void CheckMemory();
  void CheckQuiet();
  void Drain();
  void Execute(engine::Command command);
  void Kill(bool in_commit);
  // Into the hash; when verbose, to stderr too.
  void Trace(const std::string& line);
  void Print(const std::string& line) const;

  // The smallest step that the clocks show.
  Micros tick() const { return Model::HoldsAll(options_) ? Micros(1) : Millis(1); }

  // Of a millisecond, in whole ticks.
  Micros Fraction();
  Now WithFractions(Now now);
  // How long until the engine is woken, or `otherwise`: in whole ticks, never too short.
  Micros UntilWoken(Micros otherwise) const;

  // The clocks as the daemon takes them: as they are, unless they are held.
  Now now() const { return watch_ != nullptr ? watch_->Trust(clock_.Sample()) : clock_.Sample(); }

  std::optional<engine::ClockSeen> NotedClock() const;
  void WatchClock();
  void CheckHold();

  bool failed() const { return !result_.violation.empty(); }

  void Note();

  Choices choices_;
  engine::EngineOptions options_;
  Habits habits_;
  uint64_t fault_percent_ = 0;
  bool wall_steps_back_ = true;
  bool little_memory_ = false;
  bool verbose_ = false;
  bool edits_file_ = false;      // else each start finds it as it was at the first
  engine::Configure file_ = {};  // as it is now
  SimulatedClock clock_;
  storage::MemoryJobStore store_;
  engine::ClockWatchOptions watch_options_;
  std::unique_ptr<engine::ClockWatch> watch_;  // while a process runs
  std::unique_ptr<engine::Engine> engine_;
  std::deque<engine::SealedBatch> sealed_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Oracle> oracle_;
  engine::RequestId next_request_ = 1;
  uint64_t boots_ = 1;

  // A copy of the store, with what must be in it. What lives before it was put back have given out
  // is known to clients all the same.
  struct Copy {
    storage::MemoryJobStore store;
    Oracle oracle;
    WallTime noted;  // in the store, as the time of its last write
  };

  bool puts_back_ = false;
  std::optional<Copy> copy_;
  std::set<JobId> given_ids_;
  std::set<std::tuple<JobId, uint64_t, uint64_t>> given_leases_;
  WallTime highest_wall_;  // that the machine has shown
  uint64_t starts_ = 0;    // of all lives
  Result result_;
};

}  // namespace delayd::simulation

#include "tests/simulation/simulation.h"

#include <algorithm>
#include <cstdio>

#include "base/coding.h"
#include "base/limits.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "tests/simulation/compare.h"
#include "tests/simulation/memory_audit.h"

namespace delayd::simulation {
namespace {

using std::chrono::hours;

// How many steps without a look at all rows of the store, at most, on average.
constexpr uint64_t kStepsPerAudit = 12;
constexpr uint64_t kAuditsPerRebuild = 4;
// Below this the engine closes no batch of its own accord (limits::kCommitOpsJobsMax), so that
// every mark is seen before it counts.
constexpr size_t kUnsealedBytesMax = 100'000;
constexpr uint64_t kDrainTurnsMax = 20'000;
constexpr uint64_t kAdvancesMax = 100'000;
constexpr uint64_t kAdvancesPerCommit = 1'000;

Now StartOfTime(Choices* choices) {
  // A dead battery, an old image, a far future, or a good clock.
  static constexpr int64_t kWalls[] = {1'000, 980'000'000'000, 4'070'908'800'000};
  const int64_t wall =
      choices->OneIn(5) ? kWalls[choices->Below(3)] : 1'700'000'000'000 + choices->Magnitude(36);
  return {.wall = WallFromMillis(wall), .boot = BootFromMillis(choices->Magnitude(28))};
}

}  // namespace

void Result::Add(const Result& other) {
  step += other.step;
  trace = trace * 31 + other.trace;
  simulated += other.simulated;
  commands += other.commands;
  for (size_t i = 0; i < of_kind.size(); ++i) {
    of_kind[i] += other.of_kind[i];
  }
  answers += other.answers;
  hand_outs += other.hand_outs;
  commits += other.commits;
  kills += other.kills;
  reboots += other.reboots;
  clock_steps += other.clock_steps;
  suspends += other.suspends;
  clock_suspicions += other.clock_suspicions;
  edits += other.edits;
  restores += other.restores;
  unfinished += other.unfinished;
  for (const auto& [reason, count] : other.refusals) {
    refusals[reason] += count;
  }
}

Simulation::Simulation(Choices choices) : choices_(choices), clock_(StartOfTime(&choices_)) {
  DrawOptions();
  DrawHabits();
  DrawMemory();
  clock_ = SimulatedClock(WithFractions(clock_.Sample()));
}

void Simulation::DrawOptions() {
  static constexpr int64_t kRetentions[] = {0, 5'000, 3'600'000, 86'400'000};
  options_.boot_id = choices_.OneIn(8) ? 0 : boots_;
  options_.defaults.key_retention = Millis(kRetentions[choices_.Below(4)]);
  options_.defaults.history_retention =
      Millis(choices_.OneIn(2) ? kRetentions[choices_.Below(4)] : 0);
  static constexpr int64_t kJumps[] = {0, 3'600'000, 86'400'000, 2'592'000'000};
  static constexpr int64_t kHolds[] = {1, 60'000, 3'600'000, 315'360'000'000};
  watch_options_ = {.max_jump = Millis(kJumps[choices_.Below(4)]),
                    .hold_max = Millis(kHolds[choices_.Below(4)])};
  options_.clock_note_interval = Millis(choices_.OneIn(3) ? 604'800'000 : 0);
  options_.clock_note_min = Millis(choices_.OneIn(2) ? 1000 : 0);
  options_.jobs_per_mark = choices_.OneIn(2) ? 32 : 1;
  options_.defaults.max_attempts = choices_.OneIn(2) ? 25 : 3;
  options_.defaults.lease = Millis(choices_.OneIn(2) ? 60'000 : 500);
  file_.defaults = options_.defaults;
  edits_file_ = choices_.OneIn(3);
}

void Simulation::DrawHabits() {
  habits_.queues = 1 + choices_.Below(4);
  habits_.keys = 2 + choices_.Below(10);
  habits_.jobs_max = 10 + choices_.Below(100);
  // Up to 25 days; seldom up to 35 years.
  habits_.delay_bits = static_cast<unsigned>(12 + choices_.Below(choices_.OneIn(8) ? 29 : 20));
  habits_.big_batches = choices_.OneIn(25);
  // Which of two workers that wait on several queues each gets a job depends on the order of timers
  // within one millisecond; a rebuilt wheel, or a job loaded late, may change that order.
  habits_.shared_waits = choices_.OneIn(3);
  if (habits_.shared_waits) {
    habits_.delay_bits = std::min(habits_.delay_bits, 37U);  // within the horizon
  }
  habits_.defaults = options_.defaults;
  habits_.narrow_quotas = choices_.OneIn(4);
  habits_.retentions_change = choices_.OneIn(3);
  // Beyond the horizon; and a century's notes of the clock would take longer than all else.
  habits_.extremes = choices_.OneIn(4) && !habits_.shared_waits;
  if (habits_.extremes) {
    options_.clock_note_interval = Millis(0);
  }
  wall_steps_back_ = !habits_.shared_waits;
  fault_percent_ = choices_.OneIn(4) ? 0 : choices_.Below(12);
  puts_back_ = fault_percent_ > 0 && choices_.OneIn(4);
  little_memory_ = limits::kAreNarrow || choices_.OneIn(habits_.shared_waits ? 3 : 2);
  if (little_memory_) {
    habits_.queues = 2 + choices_.Below(4);
  }
}

void Simulation::DrawMemory() {
  if (choices_.OneIn(2)) {
    options_.empty_queues_max = choices_.Below(4);
  }
  // From nearly everything on disk to nearly everything in memory.
  static constexpr int64_t kHorizons[] = {2, 1'000, 60'000, 600'000, 2'592'000'000};
  const Millis horizon(kHorizons[choices_.Below(5)]);
  options_.horizon = habits_.shared_waits && !little_memory_ ? Model::kHorizonOfAll : horizon;
  if (little_memory_) {
    // Where a turn does little, its bounds are met with room in memory as well.
    options_.memory_jobs_max = limits::kAreNarrow && choices_.OneIn(3)
                                   ? Model::kLittleMemoryJobsMax
                                   : 1 + choices_.Below(choices_.OneIn(2) ? 40 : 8);
    options_.sweep_slots = choices_.OneIn(2) ? 3 : 16'384;
  }
}

Micros Simulation::Fraction() {
  return tick() * static_cast<int64_t>(choices_.Below(static_cast<uint64_t>(Millis(1) / tick())));
}

Now Simulation::WithFractions(Now now) {
  now.wall_rest = Fraction();
  now.boot_rest = Fraction();
  return now;
}

Micros Simulation::UntilWoken(Micros otherwise) const {
  const Micros until = engine_->UntilNextEvent(now()).value_or(otherwise);
  return tick() == Millis(1) ? ceil<Millis>(until) : until;
}

void Simulation::Trace(const std::string& line) {
  result_.trace = Fingerprint(line, result_.trace);
  Print(line);
}

void Simulation::Print(const std::string& line) const {
  if (verbose_) {
    std::fprintf(stderr,
                 "%llu wall %lld.%03lld boot %lld.%03lld: %s\n",
                 static_cast<unsigned long long>(result_.step),
                 static_cast<long long>(ToMillis(now().wall)),
                 static_cast<long long>(now().wall_rest.count()),
                 static_cast<long long>(ToMillis(now().boot)),
                 static_cast<long long>(now().boot_rest.count()),
                 line.c_str());
  }
}

// Takes over what the oracle or the engine complains about.
void Simulation::Note() {
  if (failed()) {
    return;
  }
  if (watch_ != nullptr) {
    CheckHold();
  }
  if (!failed()) {
    result_.violation = oracle_->violation();
  }
  if (engine_ == nullptr || failed()) {
    return;
  }
  if (!engine_->fatal().ok()) {
    result_.violation = "the engine gave up: " + engine_->fatal().message();
  } else if (const auto incidents = engine_->TakeIncidents(); !incidents.empty()) {
    result_.violation = "the engine found damage: " + incidents[0].message();
  }
}

Result Simulation::Run(uint64_t steps) {
  workload_ = std::make_unique<Workload>(habits_, &choices_);
  oracle_ = std::make_unique<Oracle>(options_);
  Start();
  for (; result_.step < steps && !failed() && !choices_.Exhausted(); ++result_.step) {
    Step();
    Note();
  }
  if (!failed()) {
    Drain();
    Note();
  }
  return result_;
}

std::optional<engine::ClockSeen> Simulation::NotedClock() const {
  std::string value;
  if (!store_.Get(storage::Table::kMeta, storage::kClockKey, &value).ok()) {
    return std::nullopt;
  }
  const auto record = storage::DecodeClockRecord(storage::kClockKey, value);
  return engine::ClockSeen{.wall = record->wall, .boot_id = record->boot_id, .boot = record->boot};
}

// What a start of the daemon does before it loads anything.
void Simulation::WatchClock() {
  options_.machine_wall = clock_.Sample().wall;
  watch_ = std::make_unique<engine::ClockWatch>(
      watch_options_, NotedClock(), options_.boot_id, clock_.Sample());
}

// A hold may not be ahead of the clock, nor be kept when the clock is where it can be.
void Simulation::CheckHold() {
  const WallTime raw = clock_.Sample().wall;
  const WallTime wall = now().wall;
  const bool held = watch_->state() == engine::ClockState::kHeld;
  if (held ? raw - wall <= watch_options_.max_jump : wall != raw) {
    result_.violation = "P2: the clock shows " + std::to_string(ToMillis(raw)) +
                        " and is taken for " + std::to_string(ToMillis(wall));
  }
}

void Simulation::Start() {
  for (;;) {
    ++starts_;
    WatchClock();
    auto loaded = engine::Engine::Load(options_, store_, now());
    if (!loaded.ok()) {
      result_.violation = "P3: the store cannot be loaded: " + loaded.status().message();
      return;
    }
    engine_ = std::move(loaded).value();
    oracle_->Restarted(options_, store_, now());
    // The epoch must be durable before anybody is served; it may take several tries.
    const bool lost =
        choices_.Percent(fault_percent_) && choices_.OneIn(3) && !choices_.Exhausted();
    if (!lost) {
      CommitAll();
      oracle_->CheckCounters(engine_->stats());
      return Note();
    }
    Seal();
    Kill(/*in_commit=*/true);
  }
}

void Simulation::Step() {
  highest_wall_ = std::max(highest_wall_, clock_.Sample().wall);
  if (fault_percent_ > 0 && choices_.Percent(fault_percent_)) {
    switch (choices_.Below(puts_back_ ? 10 : 8)) {
      case 9:
      case 8:
        CopyOrPutBack();
        break;
      case 7:
        FillDisk();
        break;
      case 6:
        AcceptClock();
        break;
      case 0:
      case 1:
        Crash();
        break;
      case 2:
        Reboot();
        break;
      case 3:
        Suspend();
        break;
      default:
        SetWallClock();
        break;
    }
    return;
  }
  const uint64_t kind = choices_.Below(100);
  if (kind < 55) {
    Command();
  } else if (kind < 75) {
    PassTime();
  } else if (kind < 85) {
    Seal();
  } else if (kind < 95) {
    CommitOne();
  } else {
    CommitAll();
  }
  CollectOrNot();
  oracle_->CheckCounters(engine_->stats());
  const size_t most = result_.step % 5;
  oracle_->CheckFigures(engine_->Figures(most), most);
  CheckMemory();
  if (choices_.OneIn(kStepsPerAudit)) {
    CheckQuiet();
  }
}

void Simulation::Command() {
  Execute(workload_->Next(now(), oracle_->model().jobs().size()));
}

void Simulation::Execute(engine::Command command) {
  const engine::RequestId request = next_request_++;
  ++result_.commands;
  ++result_.of_kind[command.index()];
  if (verbose_) {
    Print("request " + std::to_string(request) + " " + DescribeCommand(command));
  }
  if (const auto* configure = std::get_if<engine::Configure>(&command)) {
    file_ = *configure;
  }
  // Its client may go before the answer, however soon that comes.
  if (std::holds_alternative<engine::Lease>(command) ||
      std::holds_alternative<engine::LeaseJob>(command)) {
    workload_->Waits(request);
  }
  oracle_->Executed(request, command, now());
  engine_->Execute(request, std::move(command), now());
  SealWhatMustBeSeen();
  LearnHandOuts();
}

// With little memory the model must know what was handed out before the next command.
void Simulation::LearnHandOuts() {
  if (!little_memory_) {
    return;
  }
  const engine::StatsView is = engine_->stats();
  const engine::StatsView known = oracle_->model().Stats();
  if (is.handed_out != known.handed_out || is.died != known.died || is.waiting != known.waiting) {
    CommitAll();
    Collect();
  }
}

void Simulation::Advance() {
  bool is_done = AdvanceOnce();
  // Nothing is asked in a millisecond in which memory decides whether a job is ready.
  while (!failed() && oracle_->model().AnyMayBeReady(now())) {
    clock_.Advance(Millis(1));
    result_.simulated += Millis(1);
    is_done = AdvanceOnce();
  }
  if (!is_done) {
    return;
  }
  const std::optional<Micros> until = engine_->UntilNextEvent(now());
  oracle_->CheckNextEvent(until, now());
  oracle_->CheckNextTrim(until, now());
}

// Until the engine is done with this moment. With little memory it may take many turns to make room
// and to load what is due: then the clients, and the time, do not always wait for the last of them.
bool Simulation::AdvanceOnce() {
  oracle_->Advanced(now());
  const bool may_wait = !little_memory_ || choices_.OneIn(2);
  bool is_done = true;
  for (uint64_t rounds = 0; engine_->Advance(now()); ++rounds) {
    if (rounds == kAdvancesMax) {
      result_.violation = "the engine is never done with this moment";
      return true;
    }
    if (!may_wait && choices_.OneIn(3)) {
      is_done = false;
      ++result_.unfinished;
      break;
    }
    if (rounds % kAdvancesPerCommit == kAdvancesPerCommit - 1) {
      CommitAll();  // as it goes on in the daemon: what is under way may not fit into memory
    }
  }
  LearnHandOuts();
  SealWhatMustBeSeen();
  return is_done;
}

void Simulation::PassTime() {
  const Micros next = UntilWoken(hours(24 * 30));
  const Micros far_bound = hours(24 * 90);
  Micros by(0);
  switch (choices_.Below(6)) {
    case 0:
      break;  // a turn without any time in it
    case 1:
      by = Millis(choices_.Below(50)) + Fraction();
      break;
    case 2:
      by = std::max(next - tick(), Micros(0));
      break;
    case 3:
      by = Millis(choices_.Magnitude(habits_.delay_bits)) + Fraction();
      break;
    default:
      by = next;
      break;
  }
  by = std::min(by, far_bound);
  clock_.Advance(by);
  result_.simulated += by;
  Trace("passes " + std::to_string(by.count()));
  Advance();
}

bool Simulation::Seal() {
  const auto sealed = engine_->Seal(now());
  if (!sealed) {
    return false;
  }
  for (size_t i = 0; i < sealed->batch->size(); ++i) {
    const storage::Batch::Op op = sealed->batch->op(i);
    result_.trace = Fingerprint(op.key, Fingerprint(op.value, result_.trace + op.is_delete));
  }
  Trace("sealed batch " + std::to_string(sealed->sequence));
  oracle_->Sealed(*sealed, now());
  sealed_.push_back(*sealed);
  return true;
}

// What the engine decides by itself (marks, trims) must be known before the next command.
void Simulation::SealWhatMustBeSeen() {
  size_t unsealed = engine_->uncommitted_bytes();
  for (const engine::SealedBatch& sealed : sealed_) {
    unsealed -= sealed.batch->bytes();
  }
  if (unsealed > kUnsealedBytesMax || oracle_->model().HasRetentionOver()) {
    while (Seal()) {
    }
  }
}

bool Simulation::CommitOne() {
  if (sealed_.empty() && !Seal()) {
    return false;
  }
  const engine::SealedBatch sealed = sealed_.front();
  sealed_.pop_front();
  storage::JobStore::OnDurable on_durable;
  if (sealed.sequence % 2 == 0) {
    while (Seal()) {  // what the engine has decided by itself is known before its answers
    }
    on_durable = [&] {
      engine_->Durable(sealed.sequence);
      oracle_->Durable(sealed.sequence);
      Collect();
    };
  }
  const Status committed = store_.Commit(*sealed.batch, on_durable);
  if (!committed.ok()) {
    result_.violation = "the store fails unasked: " + committed.message();
    return false;
  }
  engine_->Committed(sealed.sequence);
  oracle_->Committed(sealed.sequence);
  ++result_.commits;
  Trace("committed batch " + std::to_string(sealed.sequence));
  return true;
}

void Simulation::CommitAll() {
  while (!failed() && CommitOne()) {
  }
}

// Answers that are not taken when the process dies are lost: nobody knows what came of them.
void Simulation::CollectOrNot() {
  if (fault_percent_ == 0 || !choices_.OneIn(3)) {
    Collect();
  }
}

void Simulation::Collect() {
  for (const engine::Reply& reply : engine_->TakeReplies()) {
    Trace("answer " + Describe(reply));
    ++result_.answers;
    if (!reply.status.ok()) {
      ++result_.refusals[std::string(reply.status.reason())];
    }
    if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
      result_.hand_outs += leased->jobs.size();
    }
    oracle_->Replied(reply);
    NoteGiven(reply);
    workload_->Told(reply);
  }
}

void Simulation::CheckMemory() {
  if (!failed() && engine_->fatal().ok()) {
    result_.violation = engine::MemoryAudit(*engine_).Run();
  }
}

void Simulation::CheckQuiet() {
  CommitAll();
  Collect();
  oracle_->CheckNothingOwed();
  oracle_->CheckRows(store_);
  if (choices_.OneIn(kAuditsPerRebuild) && !choices_.Exhausted()) {
    oracle_->CheckVerify(store_);
    oracle_->CheckRebuild(store_, now());
  }
}

// The end: no more faults, workers that do their work. Every job must come to its end (P3).
void Simulation::Drain() {
  fault_percent_ = 0;
  Execute(engine::Configure{.defaults = habits_.defaults});
  for (const std::string& queue : workload_->queues()) {
    Execute(engine::Resume{.queue = queue});
  }
  for (uint64_t turn = 0; !failed(); ++turn) {
    Advance();
    CommitAll();
    Collect();
    Execute(engine::Lease{.queues = workload_->queues(), .count = 1000, .lease = hours(24)});
    std::vector<engine::Command> ends;
    for (const auto& [id, job] : oracle_->model().jobs()) {
      if (job.state == JobState::kDead) {
        engine::Cancel cancel;  // by name: g++ 12 takes the key of a temporary for uninitialised
        cancel.job = id;
        ends.emplace_back(std::move(cancel));
      } else if (job.state == JobState::kLeased) {
        const uint64_t epoch = oracle_->model().epoch;
        ends.emplace_back(engine::Ack{{.job = id, .epoch = epoch, .sequence = job.lease_sequence}});
      }
    }
    for (engine::Command& end : ends) {
      Execute(std::move(end));
    }
    CheckQuiet();
    Collect();
    Note();
    if (oracle_->model().jobs().empty() && oracle_->model().done().empty()) {
      return;
    }
    if (oracle_->model().jobs().empty() && !engine_->UntilNextEvent(now())) {
      result_.violation = "finished jobs are kept for ever: no trim is planned";
    } else if (turn == kDrainTurnsMax) {
      result_.violation = "P3: jobs are left that are never handed out";
    }
    const Micros by = UntilWoken(Micros(0));
    clock_.Advance(by);
    result_.simulated += by;
  }
}

}  // namespace delayd::simulation

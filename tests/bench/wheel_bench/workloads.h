// tests/bench/wheel_bench/workloads.h — what is done to each structure and how it is timed.
//
// Each workload runs once per repetition on a fresh structure and reports the counter "ns" (per
// operation); preparation is not timed. The handle table belongs to the caller and is not counted.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/wheel_bench/bench_clock.h"
#include "tests/bench/wheel_bench/bench_data.h"
#include "wheel/timing_wheel.h"

namespace delayd::bench {

constexpr size_t kBatch = 256;  // commands of a turn

struct Load {
  size_t count;
  Mix mix = Mix::kUniform;
};

inline size_t ResidentBytes() {
  size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) {
      pages = 0;
    }
    std::fclose(file);
  }
  return pages * 4096;
}

// One timed stretch of `operations`; its time is the iteration's.
class Stretch {
 public:
  Stretch(benchmark::State& state, size_t operations)
      : state_(state), operations_(operations), start_(ThreadTimeNs()) {}

  ~Stretch() {
    const double ns = static_cast<double>(ThreadTimeNs() - start_);
    state_.SetIterationTime(ns * 1e-9);
    state_.counters["ns"] = ns / static_cast<double>(operations_);
  }

  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

 private:
  benchmark::State& state_;
  size_t operations_;
  uint64_t start_;
};

// A structure with `load.count` timers in it, and their handles.
template <typename S>
struct Filled {
  explicit Filled(Load load)
      : delays(Delays(load.count, load.mix, 1)), handles(load.count), timers(load.count) {
    for (size_t i = 0; i < load.count; ++i) {
      handles[i] = timers.Add(kStart + delays[i], i);
    }
  }

  std::vector<typename S::Handle> ShuffledHandles(uint64_t seed) const {
    std::vector<typename S::Handle> shuffled;
    shuffled.reserve(handles.size());
    for (const uint32_t i : Permutation(handles.size(), seed)) {
      shuffled.push_back(handles[i]);
    }
    return shuffled;
  }

  std::vector<uint32_t> delays;
  std::vector<typename S::Handle> handles;
  S timers;
};

template <typename S>
void Insert(benchmark::State& state, Load load) {
  for (auto _ : state) {
    const auto delays = Delays(load.count, load.mix, 1);
    std::vector<typename S::Handle> handles(load.count);
    ::malloc_trim(0);
    const size_t before = ResidentBytes();
    S timers(load.count);
    {
      const Stretch stretch(state, load.count);
      for (size_t i = 0; i < load.count; ++i) {
        handles[i] = timers.Add(kStart + delays[i], i);
      }
    }
    const size_t grown = ResidentBytes() - before;
    state.counters["bytes"] = static_cast<double>(grown) / static_cast<double>(load.count);
  }
}

// The same where memory is warm and free nodes lie in random order.
template <typename S>
void InsertWarm(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Filled<S> filled(load);
    for (const uint32_t i : Permutation(load.count, 2)) {
      filled.timers.Cancel(filled.handles[i]);
    }
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count; ++i) {
      filled.handles[i] = filled.timers.Add(kStart + filled.delays[i], i);
    }
  }
}

// All of them in random order. The handles lie in the order of their use, here and where timers are
// moved: looking one up would be a second random access, and the caller's.
template <typename S>
void Cancel(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Filled<S> filled(load);
    const auto handles = filled.ShuffledHandles(2);
    const Stretch stretch(state, load.count);
    for (const typename S::Handle handle : handles) {
      filled.timers.Cancel(handle);
    }
  }
}

template <typename S>
void CancelBatch(benchmark::State& state, Load load) {
  using Kind = wheel::TimerCommand::Kind;
  for (auto _ : state) {
    Filled<S> filled(load);
    const auto handles = filled.ShuffledHandles(2);
    std::array<wheel::TimerCommand, kBatch> commands;
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count;) {
      const size_t size = std::min(kBatch, load.count - i);
      for (size_t k = 0; k < size; ++k) {
        commands[k] = {.kind = Kind::kCancel, .handle = handles[i + k]};
      }
      filled.timers.Apply({commands.data(), size});
      i += size;
    }
  }
}

// New delays for all, in random order.
template <typename S>
void Reschedule(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Filled<S> filled(load);
    auto handles = filled.ShuffledHandles(3);
    const auto delays = Delays(load.count, load.mix, 4);
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count; ++i) {
      filled.timers.Move(handles[i], kStart + delays[i]);
    }
  }
}

template <typename S>
void RescheduleBatch(benchmark::State& state, Load load) {
  using Kind = wheel::TimerCommand::Kind;
  for (auto _ : state) {
    Filled<S> filled(load);
    const auto handles = filled.ShuffledHandles(3);
    const auto delays = Delays(load.count, load.mix, 4);
    std::array<wheel::TimerCommand, kBatch> commands;
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count;) {
      const size_t size = std::min(kBatch, load.count - i);
      for (size_t k = 0; k < size; ++k, ++i) {
        commands[k] = {.kind = Kind::kMove, .handle = handles[i], .due = kStart + delays[i]};
      }
      filled.timers.Apply({commands.data(), size});
    }
  }
}

// Ask for the next moment, advance to it, until nothing is left: after every timer was moved once.
template <typename S>
void Drain(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Filled<S> filled(load);
    const auto order = Permutation(load.count, 3);
    const auto delays = Delays(load.count, load.mix, 4);
    for (size_t i = 0; i < load.count; ++i) {
      filled.timers.Move(filled.handles[order[i]], kStart + delays[i]);
    }
    size_t popped = 0;
    uint64_t sum = 0;
    {
      const Stretch stretch(state, load.count);
      for (Tick now = filled.timers.Next(); now != wheel::kNever; now = filled.timers.Next()) {
        filled.timers.Advance(now, [&](uint64_t id) {
          ++popped;
          sum += id;
        });
      }
    }
    benchmark::DoNotOptimize(sum);
    if (popped != load.count) {
      state.SkipWithError("timers lost");
    }
  }
}

// Steady: per millisecond four timers are cancelled and replaced, and what expires is added again.
template <typename S>
void Mixed(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Filled<S> filled(load);
    const size_t milliseconds = std::max<size_t>(200'000, load.count / 4);
    const auto delays = Delays(size_t{1} << 20, load.mix, 5);
    size_t next_delay = 0;
    const auto delay = [&] { return delays[next_delay++ & ((size_t{1} << 20) - 1)]; };
    Random random(6);
    size_t operations = 0;
    const uint64_t start = ThreadTimeNs();
    for (Tick now = kStart; now < kStart + milliseconds; ++now) {
      for (int i = 0; i < 4; ++i) {
        const size_t at = random.Below(load.count);
        filled.timers.Cancel(filled.handles[at]);
        filled.handles[at] = filled.timers.Add(now + delay(), at);
      }
      operations += 8;
      filled.timers.Advance(now, [&](uint64_t id) {
        filled.handles[id] = filled.timers.Add(now + delay(), id);
        operations += 2;
      });
    }
    const double ns = static_cast<double>(ThreadTimeNs() - start);
    state.SetIterationTime(ns * 1e-9);
    state.counters["ns"] = ns / static_cast<double>(operations);
  }
}

// The same load as an engine hands it over: a turn of 32 ms at a time, each turn's commands at
// once.
template <typename S>
void MixedBatch(benchmark::State& state, Load load) {
  using Kind = wheel::TimerCommand::Kind;
  constexpr size_t kTurn = 32;
  for (auto _ : state) {
    Filled<S> filled(load);
    const size_t milliseconds = std::max<size_t>(200'000, load.count / 4);
    const auto delays = Delays(size_t{1} << 20, load.mix, 5);
    size_t next_delay = 0;
    const auto delay = [&] { return delays[next_delay++ & ((size_t{1} << 20) - 1)]; };
    Random random(6);
    size_t operations = 0;
    std::vector<wheel::TimerCommand> commands;
    std::array<uint32_t, 4 * kTurn> chosen;
    const uint64_t start = ThreadTimeNs();
    for (Tick now = kStart; now < kStart + milliseconds; now += kTurn) {
      commands.clear();
      filled.timers.Advance(now, [&](uint64_t id) {
        commands.push_back({.kind = Kind::kAdd, .due = now + delay(), .id = id});
        filled.handles[id] = wheel::kNoTimer;
      });
      operations += commands.size();  // the pops
      for (uint32_t& at : chosen) {
        at = random.Below(load.count);
        __builtin_prefetch(&filled.handles[at], 1);
      }
      for (const uint32_t at : chosen) {
        if (filled.handles[at] == wheel::kNoTimer) {
          continue;  // on its way in already
        }
        commands.push_back({.kind = Kind::kCancel, .handle = filled.handles[at]});
        commands.push_back({.kind = Kind::kAdd, .due = now + delay(), .id = at});
        filled.handles[at] = wheel::kNoTimer;
      }
      filled.timers.Apply(commands);
      for (const wheel::TimerCommand& command : commands) {
        if (command.kind == Kind::kAdd) {
          filled.handles[command.id] = command.handle;
        }
      }
      operations += commands.size();
    }
    const double ns = static_cast<double>(ThreadTimeNs() - start);
    state.SetIterationTime(ns * 1e-9);
    state.counters["ns"] = ns / static_cast<double>(operations);
  }
}

// The whole life of a job when nine of ten are cancelled before they are due: `count` stay pending,
// each is cancelled and replaced at a random moment unless it expires first. ns per job; bytes per
// live timer.
template <typename S>
void Life90(benchmark::State& state, Load load) {
  for (auto _ : state) {
    const auto delays = Delays(load.count, load.mix, 1);
    std::vector<typename S::Handle> handles(load.count);
    std::vector<bool> pending(load.count, false);
    ::malloc_trim(0);
    const size_t before = ResidentBytes();
    S timers(load.count);
    for (size_t i = 0; i < load.count; ++i) {
      handles[i] = timers.Add(kStart + delays[i], i);
      pending[i] = true;
    }
    // With so many replacements a millisecond a tenth of the timers lives to be due.
    const size_t per_tick = (load.count + 359'999) / 360'000;
    const size_t jobs = load.count * 4;
    Random random(7);
    size_t done = 0;
    size_t next_delay = 0;
    const uint64_t start = ThreadTimeNs();
    for (Tick now = kStart; done < jobs; ++now) {
      for (size_t i = 0; i < per_tick; ++i, ++done) {
        const size_t at = random.Below(load.count);
        if (pending[at]) {
          timers.Cancel(handles[at]);
        }
        handles[at] = timers.Add(now + delays[next_delay], at);
        next_delay = next_delay + 1 == load.count ? 0 : next_delay + 1;
        pending[at] = true;
      }
      timers.Advance(now, [&](uint64_t id) { pending[id] = false; });
    }
    const double ns = static_cast<double>(ThreadTimeNs() - start);
    const auto live = static_cast<double>(std::count(pending.begin(), pending.end(), true));
    state.SetIterationTime(ns * 1e-9);
    state.counters["ns"] = ns / static_cast<double>(jobs);
    state.counters["bytes"] = static_cast<double>(ResidentBytes() - before) / live;
  }
}

// Every millisecond of an hour (far: of eight hours) in a call of its own. The same steps are taken
// three times on wheels of their own and the fastest time of each step counts: what recurs is the
// structure's doing, what does not is the machine's.
template <typename S>
void Steps(benchmark::State& state, Load load) {
  constexpr int kPasses = 3;
  const Tick steps = load.mix == Mix::kFar ? 8 * kHour : kHour;
  for (auto _ : state) {
    std::vector<uint32_t> times(steps, UINT32_MAX);
    uint64_t total = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      Filled<S> filled(load);
      size_t popped = 0;
      const uint64_t start = RealTimeNs();
      uint64_t last = start;
      for (Tick i = 0; i < steps; ++i) {
        filled.timers.Advance(kStart + 1 + i, [&](uint64_t) { ++popped; });
        const uint64_t time = RealTimeNs();
        times[i] = static_cast<uint32_t>(std::min<uint64_t>(time - last, times[i]));
        last = time;
      }
      total = last - start;
      benchmark::DoNotOptimize(popped);
    }
    state.SetIterationTime(static_cast<double>(total) * 1e-9);
    std::sort(times.begin(), times.end());
    const auto at = [&](double share) {
      return times[static_cast<size_t>(share * static_cast<double>(steps - 1))] * 1e-3;
    };
    state.counters["worst_us"] = at(1);
    state.counters["p99999_us"] = at(0.99999);
    state.counters["p9999_us"] = at(0.9999);
    state.counters["p999_us"] = at(0.999);
  }
}

// The workload of a public write-up of a Go heap delay queue: push 2.3 million, take all in order;
// ns for one push and one take.
template <typename S>
void PushTake(benchmark::State& state, Load load) {
  for (auto _ : state) {
    const auto delays = Delays(load.count, load.mix, 1);
    S timers(load.count);
    uint64_t sum = 0;
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count; ++i) {
      timers.Add(kStart + delays[i], i);
    }
    for (Tick now = timers.Next(); now != wheel::kNever; now = timers.Next()) {
      timers.Advance(now, [&](uint64_t id) { sum += id; });
    }
    benchmark::DoNotOptimize(sum);
  }
}

}  // namespace delayd::bench

// tests/bench/wheel_bench/register.h — names the cases: structure/workload/size[/mix].
#pragma once

#include <string>

#include <benchmark/benchmark.h>

#include "tests/bench/wheel_bench/workloads.h"

namespace delayd::bench {

template <typename Function>
void RegisterCase(const std::string& name, Function function, Load load) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { function(state, load); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

constexpr Load k1M{.count = 1'000'000};
constexpr Load k10M{.count = 10'000'000};
constexpr Load k1MExponential{.count = 1'000'000, .mix = Mix::kExponential};
constexpr Load k10MExponential{.count = 10'000'000, .mix = Mix::kExponential};
constexpr Load k1MFar{.count = 1'000'000, .mix = Mix::kFar};
constexpr Load k10MFar{.count = 10'000'000, .mix = Mix::kFar};
constexpr Load kGo{.count = 2'300'000};

// What every structure can do, at one size.
template <typename S>
void RegisterBasics(const std::string& structure, const std::string& size, Load load) {
  RegisterCase(structure + "/insert/" + size, Insert<S>, load);
  RegisterCase(structure + "/cancel/" + size, Cancel<S>, load);
  RegisterCase(structure + "/reschedule/" + size, Reschedule<S>, load);
}

// What a structure that says its next expiration can do besides.
template <typename S>
void RegisterAll(const std::string& structure, const std::string& size, Load load) {
  RegisterBasics<S>(structure, size, load);
  RegisterCase(structure + "/insert_warm/" + size, InsertWarm<S>, load);
  RegisterCase(structure + "/drain/" + size, Drain<S>, load);
  RegisterCase(structure + "/mixed/" + size, Mixed<S>, load);
  RegisterCase(structure + "/life90/" + size, Life90<S>, load);
  RegisterCase(structure + "/steps/" + size, Steps<S>, load);
  if constexpr (S::kBatches) {
    RegisterCase(structure + "/cancel_batch/" + size, CancelBatch<S>, load);
    RegisterCase(structure + "/reschedule_batch/" + size, RescheduleBatch<S>, load);
    RegisterCase(structure + "/mixed_batch/" + size, MixedBatch<S>, load);
  }
}

template <typename S>
void RegisterSizes(const std::string& structure) {
  RegisterAll<S>(structure, "1M", k1M);
  RegisterAll<S>(structure, "10M", k10M);
  RegisterAll<S>(structure, "1M/exp", k1MExponential);
  RegisterAll<S>(structure, "10M/exp", k10MExponential);
  RegisterCase(structure + "/steps/1M/far", Steps<S>, k1MFar);
  RegisterCase(structure + "/steps/10M/far", Steps<S>, k10MFar);
  RegisterCase(structure + "/push_take/2.3M", PushTake<S>, kGo);
}

}  // namespace delayd::bench

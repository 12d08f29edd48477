// tests/bench/load/fill.h — puts jobs as fast as the server takes them, before a measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/bench/load/dialect.h"
#include "tests/bench/load/job_maker.h"
#include "tests/bench/load/options.h"

namespace delayd::load {

// `make` gives the next so many jobs. Returns the ids the server gave.
using MakeJobs = std::function<const std::vector<NewJob>&(size_t count)>;
std::vector<uint64_t> Fill(const Options& options, size_t jobs, const MakeJobs& make);

// options.pending jobs that are due long after the run; the server has come to rest when it
// returns.
void FillPending(const Options& options, JobMaker* maker);

}  // namespace delayd::load

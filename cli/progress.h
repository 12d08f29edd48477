// cli/progress.h — the progress of long work: a bar on a terminal, a line every 10 s elsewhere.
//
// Units:   the bar counts bytes of input if the number of jobs is unknown beforehand, else jobs or
//          rows.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/time.h"
#include "cli/console.h"

namespace delayd::cli {

class Progress {
 public:
  // `total`: the value of `done` at the end; 0: unknown, so there is no bar.
  Progress(Console* console, const Clock* clock, std::string what, uint64_t total);

  ~Progress() { Clear(); }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t count, uint64_t done);
  // Removes the bar before anything else is printed.
  void Clear();

  Millis elapsed() const { return clock_->Sample().boot - start_; }

 private:
  std::string Bar(uint64_t done) const;

  Console* console_;
  const Clock* clock_;
  std::string what_;
  uint64_t total_;
  BootTime start_;
  BootTime last_;
  bool drawn_ = false;
};

// "3100/s"; "0/s" for nothing in no time.
std::string Rate(uint64_t count, Millis elapsed);

}  // namespace delayd::cli

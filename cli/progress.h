// cli/progress.h — how far long work has come: a bar on a terminal, a line every 10 s elsewhere.
//
// Units:   the bar is by bytes of input where the number of jobs is not known beforehand, else by
//          jobs or rows.
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
  // `total`: what `done` comes to at the end; 0: unknown, and there is no bar.
  Progress(Console* console, const Clock* clock, std::string what, uint64_t total);

  ~Progress() { Clear(); }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t count, uint64_t done);
  // Takes the bar away, before words are printed.
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

// "3100/s"; of nothing in no time, "0/s".
std::string Rate(uint64_t count, Millis elapsed);

}  // namespace delayd::cli

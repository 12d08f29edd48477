// cli/progress.h — how far long work has come: a bar on a terminal, a line every 10 s elsewhere.
//
// Units:   totals in bytes of input, since the count of jobs is not known beforehand.
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
  // `bytes_total` 0: unknown.
  Progress(Console* console, const Clock* clock, std::string what, uint64_t bytes_total);

  ~Progress() { Clear(); }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t count, uint64_t bytes);
  // Takes the bar away, before words are printed.
  void Clear();

  Millis elapsed() const { return clock_->Sample().boot - start_; }

 private:
  std::string Bar(uint64_t bytes) const;

  Console* console_;
  const Clock* clock_;
  std::string what_;
  uint64_t bytes_total_;
  BootTime start_;
  BootTime last_;
  bool drawn_ = false;
};

// "3100/s"; of nothing in no time, "0/s".
std::string Rate(uint64_t count, Millis elapsed);

}  // namespace delayd::cli

// daemon/process_figures.h — what the kernel says about this process.
//
// Units:   bytes, seconds.
// Errors:  none; a figure that /proc does not give is 0.
// Threads: any.
// Cost:    four small files of /proc.
// Source:  proc(5); the figures that every Prometheus client library exports.
#pragma once

#include <cstdint>

namespace delayd {

struct ProcessFigures {
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_files = 0;
  uint64_t open_files_max = 0;
  uint64_t threads = 0;
  double cpu_seconds = 0;
  double start_seconds = 0;  // since the Unix epoch
};

ProcessFigures ReadProcessFigures();

}  // namespace delayd

// wheel_bench: every timer structure under the same load, in one run. scripts/bench-wheel runs it
// and writes the table; by hand: wheel_bench --benchmark_filter='/1M$' --benchmark_repetitions=5
#include <malloc.h>

#include <benchmark/benchmark.h>

#include "tests/bench/wheel_bench/cases.h"

int main(int argc, char** argv) {
  // Large blocks go back to the system when freed, so that each case meets fresh memory.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
  delayd::bench::RegisterFloor();
  delayd::bench::RegisterWheel();
  delayd::bench::RegisterWheelSmallPages();
  delayd::bench::RegisterHeap4();
  delayd::bench::RegisterLazyPriorityQueue();
  delayd::bench::RegisterMultimap();
  delayd::bench::RegisterSlotOrders();
#ifdef DELAYD_BENCH_LIBEVENT
  delayd::bench::RegisterLibevent();
#endif
#ifdef DELAYD_BENCH_LIBUV
  delayd::bench::RegisterLibuv();
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

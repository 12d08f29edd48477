// Cases of LazyPriorityQueue; a translation unit of its own keeps each compilation small.
#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/own_structures.h"
#include "tests/bench/wheel_bench/register.h"

namespace delayd::bench {

void RegisterLazyPriorityQueue() {
  RegisterSizes<LazyPriorityQueue>("priority_queue");
}

}  // namespace delayd::bench

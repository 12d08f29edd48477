// Cases of Heap4; a translation unit of its own keeps each compilation small.
#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/own_structures.h"
#include "tests/bench/wheel_bench/register.h"

namespace delayd::bench {

void RegisterHeap4() {
  RegisterSizes<Heap4>("heap4");
}

}  // namespace delayd::bench

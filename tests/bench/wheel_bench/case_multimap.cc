// Cases of Multimap; a translation unit of its own keeps each compilation small.
#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/own_structures.h"
#include "tests/bench/wheel_bench/register.h"

namespace delayd::bench {

void RegisterMultimap() {
  RegisterSizes<Multimap>("multimap");
}

}  // namespace delayd::bench

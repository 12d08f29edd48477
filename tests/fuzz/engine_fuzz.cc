// Every sequence of commands, clock steps and kills: the bytes are the decisions of a simulated
// life.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/simulation/simulation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace delayd::simulation;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result result = Simulation{Choices(bytes)}.Run(100);
  if (!result.violation.empty()) {
    std::fprintf(stderr,
                 "VIOLATION: step %llu: %s\n",
                 static_cast<unsigned long long>(result.step),
                 result.violation.c_str());
    std::abort();
  }
  return 0;
}

// What memory allows: touching one node at random of as many nodes as there are timers.
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/register.h"
#include "wheel/page_block.h"

namespace delayd::bench {

namespace {

template <size_t kBytes>
struct alignas(kBytes) Node {
  uint64_t words[kBytes / 8];
};

// Independent read-modify-writes: the processor overlaps the misses, nothing waits for another.
template <size_t kBytes, bool kHugePages>
void RandomReadModifyWrite(benchmark::State& state, Load load) {
  for (auto _ : state) {
    const size_t bytes = (load.count * kBytes + (size_t{2} << 20) - 1) >> 21 << 21;
    const wheel::PageBlock block = wheel::AllocatePages(bytes, kHugePages ? bytes : 0);
    auto* nodes = reinterpret_cast<Node<kBytes>*>(block.get());
    for (size_t i = 0; i < load.count; ++i) {
      nodes[i].words[0] = i;
    }
    const auto order = Permutation(load.count, 2);
    const Stretch stretch(state, load.count);
    for (const uint32_t at : order) {
      ++nodes[at].words[0];
    }
    benchmark::ClobberMemory();
  }
}

// First touch: what fresh memory costs before anything is done with it.
template <size_t kBytes>
void FirstTouch(benchmark::State& state, Load load) {
  for (auto _ : state) {
    const wheel::PageBlock block = wheel::AllocatePages(load.count * kBytes, 0);
    auto* nodes = reinterpret_cast<Node<kBytes>*>(block.get());
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count; ++i) {
      nodes[i].words[0] = i;
    }
    benchmark::ClobberMemory();
  }
}

}  // namespace

void RegisterFloor() {
  for (const auto& [size, load] : {std::pair{"1M", k1M}, std::pair{"10M", k10M}}) {
    const std::string suffix = std::string("/") + size;
    RegisterCase("floor/rmw64" + suffix, RandomReadModifyWrite<64, false>, load);
    RegisterCase("floor/rmw16" + suffix, RandomReadModifyWrite<16, false>, load);
    RegisterCase("floor/rmw64_huge" + suffix, RandomReadModifyWrite<64, true>, load);
    RegisterCase("floor/rmw16_huge" + suffix, RandomReadModifyWrite<16, true>, load);
    RegisterCase("floor/first_touch16" + suffix, FirstTouch<16>, load);
  }
}

}  // namespace delayd::bench

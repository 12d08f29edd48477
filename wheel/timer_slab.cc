// Growth by segments: nothing is ever copied, so no single Add pays for all the timers before it.
#include "wheel/timer_slab.h"

namespace delayd::wheel {

void TimerSlab::AddSegment() {
  constexpr size_t kNodeBytes = kSegmentNodes * sizeof(TimerNode);
  constexpr size_t kBytes = kNodeBytes + kSegmentNodes * sizeof(uint32_t);
  constexpr size_t kSegmentsMax = (size_t{1} << 32) / kSegmentNodes - 1;
  DELAYD_CHECK(segments_.size() < kSegmentsMax);
  // The first segment stays on small pages: a wheel of ten timers should cost only a few pages.
  const bool huge = huge_pages_ && !segments_.empty();
  PageBlock block = AllocatePages(kBytes, huge ? kNodeBytes : 0);
  auto* nodes = reinterpret_cast<TimerNode*>(block.get());
  segments_.push_back({nodes, std::move(block)});
}

size_t TimerSlab::memory_bytes() const {
  return high_water_ * sizeof(TimerNode) + free_count_ * sizeof(uint32_t) +
         segments_.capacity() * sizeof(Segment);
}

}  // namespace delayd::wheel

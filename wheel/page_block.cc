// Aligned allocation with a hint. The hint is only advice: if it is refused, nothing but the speed
// changes.
#include "wheel/page_block.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace delayd::wheel {

namespace {
constexpr std::align_val_t kBlockAlignment{(size_t{2} << 20) >> kSegmentShrink};
}  // namespace

void PageBlockDeleter::operator()(std::byte* block) const {
  ::operator delete(block, kBlockAlignment);
}

PageBlock AllocatePages(size_t bytes, size_t huge_bytes) {
  auto* block = static_cast<std::byte*>(::operator new(bytes, kBlockAlignment));
#ifdef __linux__
  if (huge_bytes > 0) {
    (void)::madvise(block, huge_bytes, MADV_HUGEPAGE);
  }
#else
  (void)huge_bytes;
#endif
  return PageBlock(block);
}

}  // namespace delayd::wheel

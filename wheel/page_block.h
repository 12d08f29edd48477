// wheel/page_block.h — large blocks of memory that cost nothing until they are touched.
//
// Units:   bytes. The contents of a new block are indeterminate.
// Errors:  std::bad_alloc when the address space is used up.
// Threads: any; a block has one owner.
// Cost:    one allocation; a page is paid for (about 2.6 us per 4 KiB on the reference machine) at
//          its first touch, so bytes per timer determine the speed of inserts. Huge pages save
//          three quarters of that.
#pragma once

#include <cstddef>
#include <memory>

namespace delayd::wheel {

struct PageBlockDeleter {
  void operator()(std::byte* block) const;
};

using PageBlock = std::unique_ptr<std::byte, PageBlockDeleter>;

// Makes blocks smaller by this power of two under a sanitizer, which marks every byte it hands out,
// touched or not: tests make thousands of wheels. It also makes more of their timers cross from one
// block to the next.
#if defined(DELAYD_SANITIZED)
inline constexpr unsigned kSegmentShrink = 5;
#else
inline constexpr unsigned kSegmentShrink = 0;
#endif

// A block of `bytes`, aligned to 2 MiB. For the first `huge_bytes` (a multiple of 2 MiB) the kernel
// is asked for huge pages; a kernel without them ignores that.
PageBlock AllocatePages(size_t bytes, size_t huge_bytes);

}  // namespace delayd::wheel

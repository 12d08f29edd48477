// The rare half of the chunk lists: a new chunk, a splice.
#include "wheel/entry_list.h"

namespace delayd::wheel {

uint32_t ChunkPool::AllocateChunk() {
  if (free_head_ != 0) {
    const uint32_t chunk = free_head_;
    free_head_ = At(chunk * kChunkWords)->index;
    return chunk;
  }
  if (segments_.empty() || high_water_ == segments_.size() * kSegmentChunks) {
    DELAYD_CHECK(segments_.size() < (size_t{1} << 27) / kSegmentChunks - 1);
    constexpr size_t kBytes = kSegmentWords * sizeof(Entry);
    PageBlock block = AllocatePages(kBytes, 0);
    auto* words = reinterpret_cast<Entry*>(block.get());
    segments_.push_back({words, std::move(block)});
  }
  return high_water_++;
}

void ChunkPool::Extend(EntryList& list) {
  const uint32_t chunk = AllocateChunk();
  if (list.empty()) {
    list.head = chunk;
  } else {
    *At(list.tail - kChunkWords) = {chunk, kChunkEntries};
  }
  list.tail = chunk * kChunkWords + 1;
}

void ChunkPool::SpliceFront(EntryList& front, EntryList& list) {
  if (front.empty()) {
    return;
  }
  if (list.empty()) {
    list = front;
  } else {
    const uint32_t last = front.tail - 1;
    *At(last / kChunkWords * kChunkWords) = {list.head, last % kChunkWords};
    list.head = front.head;
  }
  front = {};
}

size_t ChunkPool::memory_bytes() const {
  return size_t{high_water_ - 1} * kChunkWords * sizeof(Entry) +
         segments_.capacity() * sizeof(Segment);
}

}  // namespace delayd::wheel

// storage/write_rest.h — how a commit that RocksDB did not let through rests before its next try.
// Private to the room.
//
// What:    where writes are slowed down, each try counts as if it had written, so too early a one
//          only makes it longer: the rest is twice as long as RocksDB would wait. For a large batch
//          that is seconds. It ends early when writes are slow no more.
// Threads: the committing thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace delayd::storage {

// `bytes_a_second` tells how slow writes are; 0: they are stopped, or not even slow any more.
// `rest` is called for one step after the other.
void RestBeforeTry(int tries,
                   uint64_t bytes,
                   const std::function<uint64_t()>& bytes_a_second,
                   const std::function<void(std::chrono::microseconds)>& rest);

}  // namespace delayd::storage

// storage/write_rest.h — how commits rest where RocksDB slows writes down. Private to the room.
//
// What:    before each write, RocksDB charges the size of the last one, or of the last try. It lets
//          the write through if the bytes that its rate has allowed since then cover that. A try
//          that is not let through is charged, too, and gets what was allowed so far taken away, so
//          too early a one only makes it longer. Hence a rest before the first try; it is as long
//          as RocksDB would wait. Where the first try fails all the same, as it does when writes
//          have just become slow, the rest before the next one is twice as long. For a large batch
//          that is seconds. Rests end early when writes are slow no more.
// Threads: the committing thread.
// Source:  WriteController::GetDelay and DBImpl::PreprocessWrite of RocksDB 7.8.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace delayd::storage {

// Tells how slow writes are; 0: they are stopped, or not even slow any more.
using BytesASecond = std::function<uint64_t()>;
// Is called for one step after the other.
using RestStep = std::function<void(std::chrono::microseconds)>;

void RestBeforeTry(int tries,
                   uint64_t bytes,
                   const BytesASecond& bytes_a_second,
                   const RestStep& rest);

// What RocksDB has allowed and not yet charged.
class WriteAllowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Rests until the first try will be let through, as far as can be told. No rest if writes were
  // not slow so far.
  void RestBeforeFirstTry(Time now, const BytesASecond& bytes_a_second, const RestStep& rest);

  // After `tries`, of which the last began at `begun` and succeeded.
  void Wrote(int tries, Time begun, uint64_t bytes);

 private:
  std::optional<Time> used_until_;  // while writes are slow: what was allowed later is left
  uint64_t last_bytes_ = 0;         // will be charged before the next write
  std::chrono::microseconds charge_{0};
};

}  // namespace delayd::storage

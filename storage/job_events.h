// storage/job_events.h — the events of a job's story inside its records.
//
// Units:   times as distances from the job's creation.
// Errors:  a kind or a number of events that no writer writes rejects the record.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/record.h"
#include "storage/seal.h"

namespace delayd::storage {

// The distance of two times without overflow, whatever they are.
constexpr int64_t Distance(int64_t from, int64_t to) {
  return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
}

constexpr int64_t Back(int64_t to, int64_t distance) {
  return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(distance));
}

void AppendEvents(std::string* out, WallTime created, const std::vector<JobEvent>& events);
std::vector<JobEvent> ReadEvents(SealReader* in, WallTime created);

}  // namespace delayd::storage

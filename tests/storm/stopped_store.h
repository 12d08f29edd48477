// tests/storm/stopped_store.h — what a data directory holds while no daemon has it open.
//
// Errors:  a store that cannot be read; what is wrong inside it is a fault in the result.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace delayd::storm {

struct StoppedStore {
  uint64_t batch = 0;               // the last one that is durable; 0: none
  std::vector<std::string> jobs;    // entries of the history: id, state, payload
  std::vector<std::string> faults;  // what VerifyStore says, and records that cannot be read
};

StatusOr<StoppedStore> ReadStoppedStore(const std::string& data_dir);

}  // namespace delayd::storm

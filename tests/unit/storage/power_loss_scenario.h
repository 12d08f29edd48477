// One life of a store that ends in a power cut, and what the next life finds.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tests/support/fault_file_system.h"

namespace delayd::storage {

struct PowerLossResult {
  Status reopened;
  uint64_t acknowledged = 0;  // batches whose commit had returned OK
  uint64_t missing = 0;       // rows of those that are gone or changed
  uint64_t torn = 0;          // batches of which a part is there, whoever acknowledged them
  uint64_t phantoms = 0;      // rows nobody wrote
  uint64_t bytes_lost = 0;
  std::string report;  // for the message of a failed test
};

// Opens a store, commits batches until the power goes at a call that `seed` chooses, and opens it
// again.
PowerLossResult LosePower(uint64_t seed, test::PowerLoss::Tail tail);

}  // namespace delayd::storage

// protocol/ack_json.h — POST /v1/leases:ack: acks many leases in one request.
//
// Errors:  kInvalidArgument naming the member or the token.
// Threads: see job_json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "base/status.h"

namespace delayd::protocol {

// {"tokens": ["4711-3-1f", ...]}
StatusOr<std::vector<LeaseToken>> ParseAckRequest(std::string_view json);

// {"acked": 99, "lost": ["4711-3-1f"]}
struct AckedLeases {
  uint64_t acked = 0;
  std::vector<LeaseToken> lost;  // leases that were already over
};

std::string AckedLeasesToJson(const AckedLeases& acked);

}  // namespace delayd::protocol

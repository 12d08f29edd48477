// protocol/cancel_json.h — POST /v1/jobs:cancel-by-id: cancels many jobs by id in one request.
//
// Errors:  kInvalidArgument naming the member or the id.
// Threads: see job_json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "base/status.h"

namespace delayd::protocol {

// {"ids": [4711, 4712]}
StatusOr<std::vector<JobId>> ParseCancelRequest(std::string_view json);

// {"cancelled": 1, "refused": [{"id": 4712, "code": "leased", "lease_expires": "..."}]}
struct CancelledJobs {
  struct Refused {
    JobId id{};
    Status status;  // what cancelling this job alone would answer; its reason and details are sent
  };

  uint64_t cancelled = 0;
  std::vector<Refused> refused;
};

std::string CancelledJobsToJson(const CancelledJobs& cancelled);

}  // namespace delayd::protocol

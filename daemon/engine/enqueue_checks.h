// daemon/engine/enqueue_checks.h — what an enqueue may ask for.
//
// Errors:  kInvalidArgument or kResourceExhausted, with the value and its limits.
// Threads: any.
#pragma once

#include <cstddef>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::engine {

Status CheckSpec(const JobSpec& spec, size_t payload_bytes_max, WallTime now);
// `now`: what a delay counts from.
Status CheckDue(const DueSpec& due, WallTime now);

}  // namespace delayd::engine

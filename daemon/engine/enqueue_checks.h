// daemon/engine/enqueue_checks.h — what an enqueue, or a move of a job, may ask for.
//
// Errors:  kInvalidArgument or kResourceExhausted, with the value and its limits.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::engine {

Status CheckSpec(const JobSpec& spec, size_t payload_bytes_max, WallTime now);
// `now`: what a delay counts from.
Status CheckDue(const DueSpec& due, WallTime now);
// A move to another due time or another priority.
Status CheckMove(const std::optional<DueSpec>& due, std::optional<uint32_t> priority, WallTime now);

}  // namespace delayd::engine

// daemon/engine/lease_checks.h — what a lease request may ask for.
//
// Errors:  kInvalidArgument, with the value and its limits.
// Threads: any.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/command.h"

namespace delayd::engine {

Status CheckLease(const Lease& command);
// How long a job is held; none: its own lease time.
Status CheckLeaseTime(std::optional<Millis> lease);
// The name of the worker.
Status CheckClient(std::string_view client);

}  // namespace delayd::engine

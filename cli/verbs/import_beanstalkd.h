// cli/verbs/import_beanstalkd.h — import --from-beanstalkd: moves the jobs of a beanstalkd here and
// reports the result.
//
// Errors:  kInvalidArgument "usage" before anything is moved; later errors say how to go on.
// Threads: one owner.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"
#include "cli/context.h"
#include "cli/exit_code.h"

namespace delayd::cli {

// `retry_for`: how long to wait for a daemon that is away, or for room.
StatusOr<ExitCode> ImportFromBeanstalkd(const std::string& address,
                                        Millis retry_for,
                                        Context* context);

}  // namespace delayd::cli

// cli/verbs/import_beanstalkd.h — import --from-beanstalkd: moves the jobs of a beanstalkd here,
// and tells what came of it.
//
// Errors:  kInvalidArgument "usage" before anything was moved; else with how to go on.
// Threads: one owner.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"
#include "cli/context.h"
#include "cli/exit_code.h"

namespace delayd::cli {

// `retry_for`: how long a daemon that is away, or room, is waited for.
StatusOr<ExitCode> ImportFromBeanstalkd(const std::string& address,
                                        Millis retry_for,
                                        Context* context);

}  // namespace delayd::cli

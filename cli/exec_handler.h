// cli/exec_handler.h — handles a job by running a command, with the payload on stdin and the rest
// in the environment; its exit status decides what becomes of the job.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/job_handler.h"

namespace delayd::cli {

// Whether the command can be run at all, so that a typo costs no job an attempt.
Status CheckCommand(const std::string& program);

// Exit 0 acks, 75 (EX_TEMPFAIL) asks for a retry, 100 buries, anything else is a failed attempt.
// `output_to_errors`: its stdout goes to our stderr, because our stdout carries data.
MakeJobHandler ExecHandler(std::vector<std::string> command, bool output_to_errors = false);

}  // namespace delayd::cli

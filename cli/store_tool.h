// cli/store_tool.h — work on a data directory or a configuration without its daemon: runs delayd's
// offline modes and reads what they report.
//
// What:    runs the delayd beside delayctl or in the package's sbin, else the one in PATH, so that
//          both are of the same version.
// Errors:  the problem that delayd reported; kInvalidArgument when there is no delayd to run,
//          kInternal when it ends without a result.
// Threads: one owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "protocol/store_json.h"

namespace delayd::cli {

using StoreProgressHook = std::function<void(const protocol::StoreProgress&)>;

// `flags` are delayd's own. Returns the last line: a result, never progress or a problem.
StatusOr<protocol::StoreLine> RunStoreTool(const std::vector<std::string>& flags,
                                           const StoreProgressHook& progress);

struct ConfigVerdict {
  bool valid = false;
  std::vector<std::string> remarks;  // the mistakes, or if valid what a start only warns about
};

// The verdict of delayd itself on `file`.
StatusOr<ConfigVerdict> CheckDaemonConfig(const std::string& file);

}  // namespace delayd::cli

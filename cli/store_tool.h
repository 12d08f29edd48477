// cli/store_tool.h — work on a data directory or a configuration without its daemon: runs the modes
// of delayd that do it, and reads what they tell.
//
// What:    delayd is the one beside delayctl or in the package's sbin, else the one in PATH, so
//          that both are of a version.
// Errors:  the problem that delayd told; kInvalidArgument when there is no delayd to run, kInternal
//          when it ends without a word.
// Threads: one owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "protocol/store_json.h"

namespace delayd::cli {

using StoreProgressHook = std::function<void(const protocol::StoreProgress&)>;

// `flags` as delayd takes them. The last line: a result, never progress or a problem.
StatusOr<protocol::StoreLine> RunStoreTool(const std::vector<std::string>& flags,
                                           const StoreProgressHook& progress);

struct ConfigVerdict {
  bool valid = false;
  std::vector<std::string> remarks;  // the mistakes, or what a start does not mind
};

// Of the daemon itself, which would read `file` so.
StatusOr<ConfigVerdict> CheckDaemonConfig(const std::string& file);

}  // namespace delayd::cli

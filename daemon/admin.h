// daemon/admin.h — an operator's commands to a running daemon's store. They run outside the turn,
// on a thread of their own, and never touch the engine.
//
// Errors:  an answer's status.
// Threads: values; an AdminFunction is called from the admin worker's thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <variant>

#include "base/status.h"
#include "protocol/store_json.h"

namespace delayd {

// Checks on a snapshot whether the tables agree with each other.
struct VerifyCommand {};

// Writes a full copy into a directory that does not exist yet.
struct BackUpCommand {
  std::string directory;
};

using AdminCommand = std::variant<VerifyCommand, BackUpCommand>;
using AdminResult = std::variant<protocol::VerifyResult, protocol::BackupResult>;
using AdminAnswer = StatusOr<AdminResult>;

// Gives up soon, with kUnavailable, once `stop` is true.
using AdminFunction =
    std::function<AdminAnswer(const AdminCommand& command, const std::atomic<bool>& stop)>;

}  // namespace delayd

#include "daemon/engine/lease_checks.h"

#include <string>

#include "base/duration_text.h"
#include "base/job.h"
#include "base/limits.h"

namespace delayd::engine {

Status CheckClient(std::string_view client) {
  if (client.size() > limits::kClientNameBytesMax) {
    return InvalidArgument("the client's name has " + std::to_string(client.size()) +
                               " bytes; use at most " + std::to_string(limits::kClientNameBytesMax),
                           "invalid_client");
  }
  return OkStatus();
}

Status CheckLeaseTime(std::optional<Millis> lease) {
  if (lease && (lease->count() < 1 || lease->count() > limits::kLeaseMsMax)) {
    return OutOfRange("lease", *lease, Millis(1), Millis(limits::kLeaseMsMax), "invalid_lease");
  }
  return OkStatus();
}

Status CheckLease(const Lease& command) {
  if (command.queues.empty()) {
    return InvalidArgument("no queue to lease from; name at least one", "invalid_queue");
  }
  for (const std::string& queue : command.queues) {
    DELAYD_RETURN_IF_ERROR(ValidateQueueName(queue));
  }
  if (command.count < 1 || command.count > limits::kLeaseCountMax) {
    return InvalidArgument("count of " + std::to_string(command.count) +
                               " is out of range; use 1 to " +
                               std::to_string(limits::kLeaseCountMax),
                           "invalid_count");
  }
  if (command.wait.count() < 0 || command.wait.count() > limits::kLeaseWaitMsMax) {
    return OutOfRange(
        "wait", command.wait, Millis(0), Millis(limits::kLeaseWaitMsMax), "invalid_wait");
  }
  DELAYD_RETURN_IF_ERROR(CheckClient(command.client));
  return CheckLeaseTime(command.lease);
}

}  // namespace delayd::engine

// Routes for one queue, and the list of all queues.
#include <utility>

#include "daemon/http/route_handlers.h"
#include "protocol/job_json.h"

namespace delayd::http {

Handled LeaseJobs(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(const protocol::LeaseRequest wish,
                          protocol::ParseLeaseRequest(input.request.body));
  engine::Lease lease;
  lease.queues.push_back(input.captures[0]);
  lease.count = wish.count;
  lease.wait = wish.wait;
  lease.lease = wish.lease;
  lease.client = wish.client;
  return Order{std::move(lease), ReplyForm::kLeased};
}

Handled PauseQueue(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(const protocol::PauseRequest wish,
                          protocol::ParsePauseRequest(input.request.body));
  return Order{engine::Pause{input.captures[0], wish.duration, wish.create}, ReplyForm::kOneQueue};
}

Handled ResumeQueue(const RouteInput& input) {
  DELAYD_RETURN_IF_ERROR(CheckNoMembers(input));
  return Order{engine::Resume{input.captures[0]}, ReplyForm::kOneQueue};
}

Handled KickQueue(const RouteInput& input) {
  DELAYD_ASSIGN_OR_RETURN(const uint32_t count, protocol::ParseKickRequest(input.request.body));
  return Order{engine::KickQueue{input.captures[0], count}, ReplyForm::kKicked};
}

Handled ListQueues(const RouteInput& input) {
  engine::ListQueues list;
  for (const auto& [name, value] : input.query) {
    if (name == "cursor") {
      list.cursor = value;
    } else {
      DELAYD_RETURN_IF_ERROR(
          Take(ParseLimit(value), &list.limit).WithContext("query parameter 'limit'"));
    }
  }
  return Order{std::move(list), ReplyForm::kQueueList};
}

Handled ShowQueue(const RouteInput& input) {
  return Order{engine::ListQueues{input.captures[0]}, ReplyForm::kOneQueue};
}

}  // namespace delayd::http

// cli/batch_sender.h — batches of jobs on their way to the daemon, several at a time; their answers
// come back in the order in which they were sent.
//
// What:    while one batch is written to disk the next is parsed, and another is on the wire.
// Errors:  the Api's.
// Threads: one owner; a thread of its own for each batch under way, where the system has one to
//          give: else it is sent before Start returns.
#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <string>
#include <vector>

#include "cli/api.h"

namespace delayd::cli {

class BatchSender {
 public:
  using Answer = StatusOr<std::vector<protocol::EnqueuedJob>>;

  // One connection a batch under way; they outlive the sender.
  explicit BatchSender(std::vector<Api*> lanes) : lanes_(std::move(lanes)) {}

  bool full() const { return answers_.size() == lanes_.size(); }

  // Only while it is not full. Once `give_up_fd` can be read, and also when the same is sent again,
  // the answer is waited for no longer than kTimeToAnswer; -1: never.
  void Start(std::string body, size_t lines, int give_up_fd);
  // Of the batch that has been under way for longest; waits for it.
  Answer Take();

  // One batch, on the connection of the one that was taken last.
  Answer SendNow(const std::string& body, size_t lines) {
    return lanes_[taken_]->EnqueueLines(body, lines);
  }

 private:
  std::vector<Api*> lanes_;
  std::deque<std::future<Answer>> answers_;
  size_t next_ = 0;   // the lane of the next batch
  size_t taken_ = 0;  // the lane of the batch that was taken last
};

}  // namespace delayd::cli

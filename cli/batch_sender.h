// cli/batch_sender.h — sends several batches of jobs at a time; their answers come back in the
// order in which they were sent.
//
// What:    the daemon writes one batch to disk while it parses the next and another is on the wire.
// Errors:  the Api's.
// Threads: one owner. Each batch under way has its own thread; when the system refuses one, the
//          batch is sent before Start returns.
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

  // One connection for each batch under way; they outlive the sender.
  explicit BatchSender(std::vector<Api*> lanes) : lanes_(std::move(lanes)) {}

  bool full() const { return answers_.size() == lanes_.size(); }

  // Only while not full. Once `give_up_fd` is readable, the answer is awaited for no longer than
  // kTimeToAnswer, also when SendNow sends the batch again; -1: no such limit.
  void Start(std::string body, size_t lines, int give_up_fd);
  // Waits for the answer to the oldest batch under way.
  Answer Take();

  // Sends one batch on the connection of the batch that was taken last.
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

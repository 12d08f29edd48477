#include "cli/batch_sender.h"

#include <memory>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "cli/interrupt.h"

namespace delayd::cli {

void BatchSender::Start(std::string body, size_t lines, int give_up_fd) {
  DELAYD_CHECK(!full());
  Api* api = lanes_[next_];
  api->GiveUpWhen(give_up_fd, kTimeToAnswer);
  next_ = (next_ + 1) % lanes_.size();
  const auto send = [api, body = std::make_shared<const std::string>(std::move(body)), lines] {
    return api->EnqueueLines(*body, lines);
  };
  try {
    if (lanes_.size() > 1) {
      answers_.push_back(std::async(std::launch::async, send));
      return;
    }
  } catch (const std::system_error&) {
    // A limit on processes was reached; sending one batch after another works as well.
  }
  answers_.push_back(std::async(std::launch::deferred, send));
  answers_.back().wait();
}

BatchSender::Answer BatchSender::Take() {
  DELAYD_CHECK(!answers_.empty());
  taken_ = (next_ + lanes_.size() - answers_.size()) % lanes_.size();
  Answer answer = answers_.front().get();
  answers_.pop_front();
  return answer;
}

}  // namespace delayd::cli

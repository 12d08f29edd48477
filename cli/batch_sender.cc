#include "cli/batch_sender.h"

#include <utility>

#include "base/check.h"

namespace delayd::cli {

void BatchSender::Start(std::string body, size_t lines) {
  DELAYD_CHECK(!full());
  Api* api = lanes_[next_];
  next_ = (next_ + 1) % lanes_.size();
  if (lanes_.size() == 1) {
    std::promise<Answer> answer;
    answer.set_value(api->EnqueueLines(body, lines));
    answers_.push_back(answer.get_future());
    return;
  }
  answers_.push_back(std::async(std::launch::async, [api, body = std::move(body), lines] {
    return api->EnqueueLines(body, lines);
  }));
}

BatchSender::Answer BatchSender::Take() {
  DELAYD_CHECK(!answers_.empty());
  taken_ = (next_ + lanes_.size() - answers_.size()) % lanes_.size();
  Answer answer = answers_.front().get();
  answers_.pop_front();
  return answer;
}

}  // namespace delayd::cli

#include "tests/bench/load/worker.h"

#include <algorithm>

namespace delayd::load {

Worker::Worker(Client* client, size_t window)
    : client_(client),
      window_(window),
      lease_jobs_(client->dialect().JobsEach(Verb::kLease, window)),
      ack_jobs_(client->dialect().JobsEach(Verb::kAck, window)) {}

void Worker::Begin(bool wait) {
  if (wait && client_->dialect().CanWait()) {
    Lease(true);
    return;
  }
  while (leases_ * lease_jobs_ < window_) {
    Lease(false);
  }
}

void Worker::Lease(bool wait) {
  ++leases_;
  client_->Lease(lease_jobs_, wait);
}

void Worker::AckAll(const std::vector<LeasedJob>& jobs) {
  for (size_t at = 0; at < jobs.size(); at += ack_jobs_) {
    tokens_.clear();
    for (size_t i = at; i < std::min(at + ack_jobs_, jobs.size()); ++i) {
      tokens_.push_back(jobs[i].token);
    }
    client_->Ack(tokens_);
  }
}

void Worker::Serve(const Answer& answer) {
  if (answer.verb != Verb::kLease) {
    return;
  }
  --leases_;
  if (!answer.jobs.empty()) {
    AckAll(answer.jobs);
    // Where one request covers the window, the next jobs are waited for behind these acks.
    Begin(window_ == lease_jobs_);
    return;
  }
  if (leases_ == 0) {
    if (client_->dialect().CanWait()) {
      Lease(true);
    } else {
      idle_since_us_ = NowMicros();
    }
  }
}

void Worker::Poll(int64_t now_us) {
  constexpr int64_t kPollMicros = 1000;
  if (idle_since_us_ >= 0 && now_us - idle_since_us_ >= kPollMicros) {
    idle_since_us_ = -1;
    Begin(false);
  }
}

}  // namespace delayd::load

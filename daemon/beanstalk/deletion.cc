#include "daemon/beanstalk/deletion.h"

#include <utility>

namespace delayd::beanstalk {

void Deletion::Add(JobId id, const std::optional<Reservations::Taken>& taken) {
  const Job job{.id = id, .is_acked = taken.has_value(), .is_cancelled = !taken || taken->is_over};
  jobs_.push_back(job);
  if (job.is_acked) {
    ack_.tokens.push_back(taken->token);
  }
  if (job.is_cancelled) {
    cancel_.jobs.push_back(id);
  }
}

std::vector<engine::Command> Deletion::TakeCommands() {
  std::vector<engine::Command> commands;
  if (!ack_.tokens.empty()) {
    commands.emplace_back(std::move(ack_));
  }
  if (!cancel_.jobs.empty()) {
    commands.emplace_back(std::move(cancel_));
  }
  answers_missing_ = commands.size();
  return commands;
}

bool Deletion::Take(const engine::Reply& reply) {
  if (!reply.status.ok() && status_.code() != StatusCode::kUnknown) {
    status_ = reply.status;
  }
  if (const auto* acked = std::get_if<engine::AckedMany>(&reply.body)) {
    lost_ = acked->lost;
  } else if (const auto* cancelled = std::get_if<engine::CancelledIds>(&reply.body)) {
    for (const engine::CancelledIds::Refused& refused : cancelled->refused) {
      refused_.push_back(refused.id);
    }
  }
  return --answers_missing_ == 0;
}

std::vector<bool> Deletion::TakeDeleted() {
  // Backwards: if a job is listed twice, only its first occurrence counts as deleted.
  std::vector<bool> deleted(jobs_.size(), false);
  for (size_t i = jobs_.size(); i-- > 0;) {
    const Job& job = jobs_[i];
    const bool is_lost = job.is_acked && !lost_.empty() && lost_.back().job == job.id;
    const bool is_refused = job.is_cancelled && !refused_.empty() && refused_.back() == job.id;
    deleted[i] = (job.is_acked && !is_lost) || (job.is_cancelled && !is_refused);
    if (is_lost) {
      lost_.pop_back();
    }
    if (is_refused) {
      refused_.pop_back();
    }
  }
  return deleted;
}

}  // namespace delayd::beanstalk

#include "daemon/beanstalk/deletion.h"

#include <utility>

namespace delayd::beanstalk {

void Deletion::AddReserved(const LeaseToken& token) {
  jobs_.push_back({.id = token.job, .is_reserved = true});
  ack_.tokens.push_back(token);
}

void Deletion::AddOther(JobId id) {
  jobs_.push_back({.id = id, .is_reserved = false});
  cancel_.jobs.push_back(id);
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
    refused_ = cancelled->refused;
  }
  return --answers_missing_ == 0;
}

std::string Deletion::TakeLines() {
  // From the end: of a job that was named twice only the first is deleted.
  std::vector<bool> deleted(jobs_.size(), true);
  for (size_t i = jobs_.size(); i-- > 0;) {
    const Job& job = jobs_[i];
    if (job.is_reserved && !lost_.empty() && lost_.back().job == job.id) {
      lost_.pop_back();
      deleted[i] = false;
    } else if (!job.is_reserved && !refused_.empty() && refused_.back().id == job.id) {
      refused_.pop_back();
      deleted[i] = false;
    }
  }
  std::string lines;
  for (const bool done : deleted) {
    lines.append(done ? "DELETED\n" : "NOT_FOUND\n");
  }
  return lines;
}

}  // namespace delayd::beanstalk

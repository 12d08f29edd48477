#include "daemon/beanstalk/reservations.h"

namespace delayd::beanstalk {

void Reservations::Add(const LeaseToken& token, BootTime ends, Millis ttr) {
  if (const auto found = held_.find(token.job); found != held_.end()) {
    Drop(found);
  }
  held_.emplace(token.job,
                Held{.token = token, .ttr = ttr, .end = ends_.Add({.at = ends, .id = token.job})});
}

void Reservations::Drop(Map::iterator held) {
  ends_.Remove(held->second.end);
  held_.erase(held);
}

std::optional<Reservations::Taken> Reservations::Take(JobId id, BootTime now) {
  const auto found = held_.find(id);
  if (found == held_.end()) {
    return std::nullopt;
  }
  const Taken taken{.token = found->second.token,
                    .is_over = ends_.Get(found->second.end).at <= now};
  Drop(found);
  return taken;
}

std::optional<LeaseToken> Reservations::Touch(JobId id, BootTime now) {
  const auto found = held_.find(id);
  if (found == held_.end() || ends_.Get(found->second.end).at <= now) {
    return std::nullopt;
  }
  ends_.Update(found->second.end, {.at = now + found->second.ttr, .id = id});
  return found->second.token;
}

std::optional<BootTime> Reservations::SoonestEnd(BootTime now) {
  while (!ends_.empty() && ends_.Top().at <= now) {
    held_.erase(ends_.Pop().id);
  }
  return ends_.empty() ? std::nullopt : std::optional(ends_.Top().at);
}

std::vector<LeaseToken> Reservations::TakeAll() {
  std::vector<LeaseToken> tokens;
  tokens.reserve(held_.size());
  for (const auto& [id, held] : held_) {
    tokens.push_back(held.token);
  }
  held_.clear();
  ends_ = Ends();
  return tokens;
}

}  // namespace delayd::beanstalk

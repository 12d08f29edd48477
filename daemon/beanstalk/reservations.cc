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
  if (held->second.end) {
    ends_.Remove(*held->second.end);
  }
  held_.erase(held);
}

std::optional<Reservations::Taken> Reservations::Take(JobId id, BootTime now) {
  const auto found = held_.find(id);
  if (found == held_.end()) {
    return std::nullopt;
  }
  const auto& [token, ttr, end] = found->second;
  const Taken taken{.token = token, .is_over = !end || ends_.Get(*end).at <= now};
  Drop(found);
  return taken;
}

std::optional<LeaseToken> Reservations::Touch(JobId id, BootTime now) {
  const auto found = held_.find(id);
  if (found == held_.end()) {
    return std::nullopt;
  }
  const auto& [token, ttr, end] = found->second;
  if (!end || ends_.Get(*end).at <= now) {
    return std::nullopt;
  }
  ends_.Update(*end, {.at = now + ttr, .id = id});
  return token;
}

std::optional<BootTime> Reservations::SoonestEnd(BootTime now) {
  while (!ends_.empty() && ends_.Top().at <= now) {
    Held& held = held_.at(ends_.Pop().id);
    held.end.reset();
    ended_.push_back(held.token);
  }
  for (; ended_.size() > kEndedMax; ended_.pop_front()) {
    const auto found = held_.find(ended_.front().job);
    if (found != held_.end() && found->second.token == ended_.front()) {  // else it is held anew
      held_.erase(found);
    }
  }
  return ends_.empty() ? std::nullopt : std::optional(ends_.Top().at);
}

std::vector<LeaseToken> Reservations::TakeAll() {
  std::vector<LeaseToken> tokens;
  tokens.reserve(held_.size());
  for (const auto& [id, held] : held_) {
    if (held.end) {
      tokens.push_back(held.token);
    }
  }
  held_.clear();
  ends_ = Ends();
  ended_.clear();
  return tokens;
}

}  // namespace delayd::beanstalk

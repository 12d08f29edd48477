// daemon/engine/user_jobs.h — how many jobs each user has stored, and which of these counts are to
// be written.
//
// What:    a job counts for the user who enqueued it, from then until it is acked or cancelled.
//          Jobs without a user are not counted.
// Units:   jobs.
// Threads: one owner.
// Cost:    O(log n) in the users that have jobs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace delayd::engine {

class UserJobs {
 public:
  // As the store has it.
  void Restore(std::string_view user, uint64_t jobs) {
    if (jobs != 0) {
      jobs_.emplace(user, jobs);
    }
  }

  void Gain(const std::string& user) {
    if (!user.empty()) {
      ++jobs_[user];
      changed_.insert(user);
    }
  }

  void Lose(const std::string& user) {
    const auto found = jobs_.find(user);
    if (found == jobs_.end()) {
      return;  // no user; or the count is wrong, which 'delayctl verify' reports
    }
    if (--found->second == 0) {
      jobs_.erase(found);
    }
    changed_.insert(user);
  }

  uint64_t Of(const std::string& user) const {
    const auto found = jobs_.find(user);
    return found == jobs_.end() ? 0 : found->second;
  }

  // For all users that have jobs: visit(user, jobs).
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [user, jobs] : jobs_) {
      visit(user, jobs);
    }
  }

  // For the users whose count has changed since the last call.
  template <typename Visit>
  void TakeChanged(const Visit& visit) {
    for (const std::string& user : changed_) {
      visit(user, Of(user));
    }
    changed_.clear();
  }

 private:
  std::map<std::string, uint64_t> jobs_;  // users without jobs are not there
  std::set<std::string> changed_;
};

}  // namespace delayd::engine

// tests/unit/wheel/naive_timers.h — the contract of TimingWheel in the plainest form: an ordered
// map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wheel/timer.h"

namespace delayd::wheel {

class NaiveTimers {
 public:
  void Add(Tick due, uint64_t id) {
    const Key key{due, sequence_++};
    by_due_[key] = id;
    key_of_[id] = key;
  }

  bool Cancel(uint64_t id) {
    const auto found = key_of_.find(id);
    if (found == key_of_.end()) {
      return false;
    }
    by_due_.erase(found->second);
    key_of_.erase(found);
    return true;
  }

  bool Move(uint64_t id, Tick due) {
    if (!Cancel(id)) {
      return false;
    }
    Add(due, id);
    return true;
  }

  bool Contains(uint64_t id) const { return key_of_.contains(id); }

  Tick DueOf(uint64_t id) const { return key_of_.at(id).first; }

  std::vector<Expired> PopDue(Tick now, size_t limit) {
    std::vector<Expired> out;
    while (out.size() < limit && !by_due_.empty() && by_due_.begin()->first.first <= now) {
      out.push_back({by_due_.begin()->second, by_due_.begin()->first.first});
      Cancel(out.back().id);
    }
    return out;
  }

  Tick Next() const { return by_due_.empty() ? kNever : by_due_.begin()->first.first; }

  size_t size() const { return by_due_.size(); }

  void Clear() {
    by_due_.clear();
    key_of_.clear();
  }

 private:
  using Key = std::pair<Tick, uint64_t>;  // due, then order of arrival
  std::map<Key, uint64_t> by_due_;
  std::unordered_map<uint64_t, Key> key_of_;
  uint64_t sequence_ = 0;
};

}  // namespace delayd::wheel

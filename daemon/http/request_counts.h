// daemon/http/request_counts.h — how many requests were answered, by method, route and status.
//
// Units:   answers. Routes by their number in Router::RouteNames; the number after the last one
//          stands for no route.
// Errors:  none.
// Threads: the core thread.
// Cost:    one increment an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace delayd::http {

class RequestCounts {
 public:
  explicit RequestCounts(size_t routes) : counts_((routes + 1) * kStatuses) {}

  void Add(size_t route, int status) {
    const size_t index = route * kStatuses + static_cast<size_t>(status - kFirstStatus);
    DELAYD_CHECK(index < counts_.size());
    ++counts_[index];
  }

  // Calls visit(route, status, count) for each pair that occurred at least once.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) {
        visit(i / kStatuses, kFirstStatus + static_cast<int>(i % kStatuses), counts_[i]);
      }
    }
  }

 private:
  static constexpr int kFirstStatus = 100;
  static constexpr size_t kStatuses = 500;

  std::vector<uint64_t> counts_;
};

}  // namespace delayd::http

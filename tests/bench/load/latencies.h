// tests/bench/load/latencies.h — durations that were seen, and their quantiles.
//
// Units:   microseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/load/load_connection.h"

namespace delayd::load {

class Latencies {
 public:
  void Add(int64_t micros) { micros_.push_back(micros); }

  // "name_p50_us":1,... as members of a JSON object, each with a comma before it.
  std::string Members(const std::string& name) {
    if (micros_.empty()) {
      Fail("nothing was measured: no latency of " + name + "; let it run for longer");
    }
    std::sort(micros_.begin(), micros_.end());
    std::string text = ",\"" + name + "_count\":" + std::to_string(micros_.size());
    for (const auto& [part, per_mille] : {std::pair("p50", size_t{500}),
                                          std::pair("p99", size_t{990}),
                                          std::pair("p999", size_t{999}),
                                          std::pair("max", size_t{1000})}) {
      text += ",\"" + name + "_" + part + "_us\":" + std::to_string(At(per_mille));
    }
    return text;
  }

 private:
  int64_t At(size_t per_mille) const {
    return micros_.empty()
               ? 0
               : micros_[std::min(micros_.size() - 1, micros_.size() * per_mille / 1000)];
  }

  std::vector<int64_t> micros_;
};

}  // namespace delayd::load

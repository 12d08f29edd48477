// cli/job_id_set.h — which jobs a long list has shown already.
//
// Cost:    ids are given out one after another, so those of a list lie close together: ten million
// of them take some 7 MB. Jobs that are the only ones left of 64 take 40 bytes each.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/job.h"

namespace delayd::cli {

class JobIdSet {
 public:
  // False: it was there already.
  bool Insert(JobId id) {
    uint64_t& block = blocks_[ToInt(id) / 64];
    const bool is_new = (block & BitOf(id)) == 0;
    block |= BitOf(id);
    return is_new;
  }

  bool Contains(JobId id) const {
    const auto block = blocks_.find(ToInt(id) / 64);
    return block != blocks_.end() && (block->second & BitOf(id)) != 0;
  }

 private:
  static uint64_t BitOf(JobId id) { return uint64_t{1} << (ToInt(id) % 64); }

  std::unordered_map<uint64_t, uint64_t> blocks_;  // by the id of each sixty-fourth job
};

}  // namespace delayd::cli

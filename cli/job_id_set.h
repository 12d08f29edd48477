// cli/job_id_set.h — the set of jobs that a long list has already shown.
//
// Cost:    ids are assigned in sequence, so those of a list lie close together: ten million of them
// take some 7 MB. A job that is the only one left of its block of 64 ids takes 40 bytes.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/job.h"

namespace delayd::cli {

class JobIdSet {
 public:
  // False when it was already there.
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

  std::unordered_map<uint64_t, uint64_t> blocks_;  // by id / 64: one bit for each of 64 ids
};

}  // namespace delayd::cli

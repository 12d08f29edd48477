// daemon/engine/job_ids.h — the ids that new jobs get: in order, and none twice over all runs.
//
// What:    ids are reserved in blocks. The mark behind the block in use is written with the batch
//          that has the block's first job. A start goes on from the mark, since ids of that block
//          may have been given out already.
// Errors:  kResourceExhausted when all have been used.
// Threads: one owner.
// Cost:    O(1); a row for each limits::kJobIdBlock of jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/job.h"
#include "base/limits.h"
#include "base/status.h"

namespace delayd::engine {

class JobIds {
 public:
  // The mark as the store has it; 0: it has none. The next `left_out` ids are skipped.
  void Restore(uint64_t mark, uint64_t left_out = 0) {
    written_mark_ = std::max<uint64_t>(mark, 1);
    next_ = written_mark_ + left_out;
    mark_ = next_;
  }

  StatusOr<JobId> Next() {
    if (next_ > limits::kJobIdMax) {
      return ResourceExhausted("all job ids have been used", "ids_exhausted");
    }
    if (next_ >= mark_) {
      mark_ = next_ + limits::kJobIdBlock;
    }
    return JobId{next_++};
  }

  // The mark if it must be written; from here on it counts as written.
  std::optional<uint64_t> TakeMark() {
    return std::exchange(written_mark_, mark_) == mark_ ? std::nullopt : std::optional(mark_);
  }

 private:
  uint64_t next_ = 1;
  uint64_t mark_ = 1;  // greater than every id that was given out
  uint64_t written_mark_ = 1;
};

}  // namespace delayd::engine

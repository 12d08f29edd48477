// daemon/engine/enqueue_plan.h — what is known of one job of an enqueue before anything is stored.
//
// What:    a batch is all or nothing: first a plan is made of each of its jobs, and anything that
//          can be refused is refused while planning.
// Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/job.h"
#include "daemon/engine/located.h"
#include "storage/record.h"

namespace delayd::engine {

struct EnqueuePlan {
  uint64_t fingerprint = 0;
  std::optional<Located> existing;               // the job that has its key
  std::unique_ptr<storage::JobRecord> replaced;  // the record of that job, which gets this content
  std::optional<size_t> same_as;                 // an earlier job of the same batch
  JobId id{};

  bool existed() const { return existing.has_value() || same_as.has_value(); }

  // Nothing is stored for it.
  bool stays() const { return existed() && replaced == nullptr; }
};

}  // namespace delayd::engine

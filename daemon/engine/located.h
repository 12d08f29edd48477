// daemon/engine/located.h — where a job was found, and why its state forbids what was asked for.
//
// Threads: values.
#pragma once

#include <optional>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/job_table.h"
#include "storage/record.h"

namespace delayd::engine {

// In memory, only on disk, among the dead, or finished.
struct Located {
  JobState state = JobState::kScheduled;
  JobId id{};
  std::optional<Slot> slot;
  storage::IndexRecord index;

  struct Finished {
    WallTime at;
    bool cancelled = false;
  };

  std::optional<Finished> finished;
};

// The finished job that this row of kKeys names.
Located FinishedByKey(const storage::KeyRecord& record);

// `ref`: how the client named the job.
Status RefuseFinished(const Located& located, const JobRef& ref);

}  // namespace delayd::engine

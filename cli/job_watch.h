// cli/job_watch.h — watches a list of jobs: redrawn on a terminal, its changes as lines elsewhere.
//
// What:    with -o jsonl, one line per change: {"change": "appeared" | "changed" | "gone", "job":
// {...}}; the first look is all "appeared". A job is gone when it has left the list, for whatever
// reason. A lease that is merely extended is no change. When the list is longer than what is
// watched, a job that slides into the watched part has not appeared, and one that slides out of it
// is not gone.
// Threads: one owner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/job.h"
#include "cli/context.h"

namespace delayd::cli {

// A usage error when a watch would show nothing useful.
Status CanWatch(const Context& context);

class JobWatch {
 public:
  // The current state of one job, wherever it stands in the list; kNotFound when it is not in it.
  using Find = std::function<StatusOr<JobView>(JobId)>;

  JobWatch(Context* context, bool soonest_first, Find find)
      : context_(context), soonest_first_(soonest_first), find_(std::move(find)) {}

  // `more`: the list goes on after these jobs.
  void Show(std::vector<JobView> jobs, bool more);

 private:
  using Place = std::pair<WallTime, JobId>;

  static Place PlaceOf(const JobView& job) { return {job.due, job.id}; }

  void Redraw(const std::vector<JobView>& jobs, bool more);
  void PrintChanges(const std::vector<JobView>& jobs, bool more);
  // Reports a job that is no longer among those watched. Not OK when the daemon cannot be asked.
  Status PrintLeft(JobId id, const std::string& job, bool more);
  void PrintChange(std::string_view change, const std::string& job);

  Context* context_;
  bool soonest_first_;
  Find find_;
  std::map<JobId, std::string> seen_;  // as JSON
  std::optional<Place> end_;           // jobs after this place were not watched
};

}  // namespace delayd::cli

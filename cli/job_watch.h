// cli/job_watch.h — a list that is looked at again and again: redrawn on a terminal, its changes as
// lines elsewhere.
//
// What:    with -o jsonl, one line a change: {"change": "appeared" | "changed" | "gone", "job":
// {...}}; the first look is all "appeared". A job is gone when it left the list, for whatever
// reason. Leases that only run on are no change. Where the list goes on behind the jobs that are
// watched, others slide in when some go, which is no change, and those that slid out are not gone.
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

// A usage error where a watch would show nothing useful.
Status CanWatch(const Context& context);

class JobWatch {
 public:
  // One job as it is, wherever it stands in the list; kNotFound: it is not there.
  using Find = std::function<StatusOr<JobView>(JobId)>;

  JobWatch(Context* context, bool soonest_first, Find find)
      : context_(context), soonest_first_(soonest_first), find_(std::move(find)) {}

  // `more`: the list goes on behind them.
  void Show(std::vector<JobView> jobs, bool more);

 private:
  using Place = std::pair<WallTime, JobId>;

  static Place PlaceOf(const JobView& job) { return {job.due, job.id}; }

  void Redraw(const std::vector<JobView>& jobs, bool more);
  void PrintChanges(const std::vector<JobView>& jobs, bool more);
  // Of a job that is not among those that are watched. Not OK: the daemon does not say.
  Status PrintLeft(JobId id, const std::string& job, bool more);
  void PrintChange(std::string_view change, const std::string& job);

  Context* context_;
  bool soonest_first_;
  Find find_;
  std::map<JobId, std::string> seen_;  // as JSON
  std::optional<Place> end_;           // what stood behind it was not watched
};

}  // namespace delayd::cli

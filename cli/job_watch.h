// cli/job_watch.h — a list that is looked at again and again: redrawn on a terminal, its changes as
// lines elsewhere.
//
// What:    with -o jsonl, one line a change: {"change": "appeared" | "changed" | "gone", "job":
// {...}}; the first look is all "appeared". A job is gone when it left the list, for whatever
// reason. Leases that only run on are no change.
// Threads: one owner.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/job.h"
#include "cli/context.h"

namespace delayd::cli {

// A usage error where a watch would show nothing useful.
Status CanWatch(const Context& context);

class JobWatch {
 public:
  explicit JobWatch(Context* context) : context_(context) {}

  void Show(std::vector<JobView> jobs);

 private:
  void Redraw(const std::vector<JobView>& jobs);
  void PrintChanges(const std::vector<JobView>& jobs);
  void PrintChange(std::string_view change, const std::string& job);

  Context* context_;
  std::map<JobId, std::string> seen_;  // as JSON
};

}  // namespace delayd::cli

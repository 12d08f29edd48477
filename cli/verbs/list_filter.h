// cli/verbs/list_filter.h — the filters of list and export, and the jobs that a filter finds.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/api.h"
#include "cli/options.h"
#include "protocol/bulk_json.h"

namespace delayd::cli {

class ListFilter {
 public:
  void Declare(Options* options);
  StatusOr<protocol::JobFilterText> Resolve() const;

 private:
  protocol::JobFilterText filter_;
};

// The filters to ask for, one after another: dead jobs are stored queue by queue.
StatusOr<std::vector<protocol::JobFilterText>> Expand(Api& api,
                                                      const protocol::JobFilterText& filter);

// Where a list that was cut goes on.
struct ListEnd {
  std::string cursor;  // empty: nothing is left
  std::string queue;   // of the filter that the cursor is for, if it has one
};

// Gives the first `limit` jobs that an expanded filter finds to `take`, page by page; an error of
// `take` ends it.
StatusOr<ListEnd> TakeJobs(Api& api,
                           std::span<const protocol::JobFilterText> filters,
                           uint64_t limit,
                           const std::function<Status(std::vector<JobView> jobs)>& take,
                           bool with_payload = false);

// The same jobs in one page; next_cursor is set when there are more.
StatusOr<protocol::JobPage> FirstJobs(Api& api,
                                      std::span<const protocol::JobFilterText> filters,
                                      uint64_t limit);

}  // namespace delayd::cli

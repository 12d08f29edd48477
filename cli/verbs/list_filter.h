// cli/verbs/list_filter.h — the filters of list and export.
//
// Threads: one owner.
#pragma once

#include <vector>

#include "base/status.h"
#include "cli/api.h"
#include "cli/options.h"

namespace delayd::cli {

class ListFilter {
 public:
  void Declare(Options* options);
  // Without limit and cursor.
  StatusOr<ListQuery> Resolve() const;

  // What to ask for, one after another: dead jobs lie queue by queue.
  static StatusOr<std::vector<ListQuery>> Expand(Api& api, const ListQuery& query);

 private:
  ListQuery query_;
};

}  // namespace delayd::cli

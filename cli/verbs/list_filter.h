// cli/verbs/list_filter.h — the filters of list and export.
//
// Threads: one owner.
#pragma once

#include "base/status.h"
#include "cli/api.h"
#include "cli/options.h"

namespace delayd::cli {

class ListFilter {
 public:
  void Declare(Options* options);
  // Without limit and cursor.
  StatusOr<ListQuery> Resolve() const;

 private:
  ListQuery query_;
};

}  // namespace delayd::cli

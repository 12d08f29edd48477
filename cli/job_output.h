// cli/job_output.h — jobs as delayctl shows them, in each output format.
//
// Threads: one owner.
#pragma once

#include <string>
#include <vector>

#include "base/job.h"
#include "cli/context.h"

namespace delayd::cli {

// One long name would make each line take several rows of the screen. Names of the usual length
// stay whole, even where the other columns leave no room for them.
inline constexpr size_t kNameWidthMin = 32;

// Not OK for a finished job whose payload was not kept.
Status PayloadIsThere(const JobView& job);

// One job as a card of names and values.
void PrintCard(const JobView& job, Context* context);

// Prints a list of jobs that comes in pieces: {"jobs": [...]}, an object per line, a table, or ids.
class JobListPrinter {
 public:
  explicit JobListPrinter(Context* context);
  ~JobListPrinter();
  JobListPrinter(const JobListPrinter&) = delete;
  JobListPrinter& operator=(const JobListPrinter&) = delete;

  void Print(const std::vector<JobView>& jobs);
  // Ends the list; JSON shows `next_cursor` if there is one, and the queue that it is about if the
  // list goes queue by queue.
  void Finish(const std::string& next_cursor = {}, const std::string& next_queue = {});

 private:
  struct Columns;

  void AddRow(const JobView& job, WallTime now);

  Context* context_;
  std::unique_ptr<Columns> columns_;
  bool first_ = true;
};

}  // namespace delayd::cli

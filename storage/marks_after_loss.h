// storage/marks_after_loss.h — repairs the marks of a store that has lost batches: those that say
// which ids, lease tokens and queue numbers were given out, and where the search for jobs begins.
//
// What:    tables are flushed one by one, so after a loss each of them ends at a batch of its own:
//          the marks in meta may be older or newer than the jobs, and a job's queue may be unknown.
//          Ids and epochs are moved above all that were ever given out, and the low-water mark
//          below every job that exists; a queue whose name is lost gets a new one ("recovered-5").
// Errors:  those of the store. Rows and marks that cannot be read are listed in `notes`, as are the
//          renamed queues; such a mark is made anew, or removed where a start does without, and the
//          damaged row of a queue is mended if it is clear which number it had.
// Threads: one, before anything else writes to the store.
// Cost:    one scan of the tables that hold ids, and one commit. Repeating it does no harm.
// Source:  docs/decisions/0024-offline-work-is-a-mode-of-the-daemon.md
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "storage/job_store.h"
#include "storage/recovery.h"

namespace delayd::storage {

Status RaiseMarksAfterLoss(const RecoveryReport& report,
                           JobStore* store,
                           std::vector<std::string>* notes);

}  // namespace delayd::storage

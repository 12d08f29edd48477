// storage/marks_after_loss.h — puts right the marks of a store that has lost batches: what says
// which ids, lease tokens and numbers of queues were given out, and from where on jobs are looked
// for.
//
// What:    tables are flushed one by one, so after a loss each stands at a batch of its own: the
//          marks in meta may be older than the jobs, or newer, and the queue of a job may not be
//          known. Ids and epochs are moved above all that were ever given out, the low-water mark
//          below every job that is there; a queue whose name is lost gets one ("recovered-5").
// Errors:  those of the store; kDataLoss for a mark that cannot be read. Rows that cannot be read
//          are told in `notes`, as are the queues.
// Threads: one, before anything else writes to the store.
// Cost:    one scan of the tables that hold ids, and one commit. Once more it does no harm.
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

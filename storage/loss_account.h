// storage/loss_account.h — the file RECOVERY in a data directory: what a recovery gives up. It
// exists from before the first log is cut until the tables are mended and the loss has been
// reported.
//
// What:    once a log has been cut it no longer shows what was lost, and tables and marks agree
//          again only when the last step is done. While the file exists, no ordinary open may
//          proceed; a recovery that is started again knows what the one before it gave up.
// Errors:  kDataLoss "damaged_store" for an open that may not proceed; kUnavailable and others for
//          what the system refuses. A file that makes no sense is mentioned in the report.
// Threads: one, with the directory locked.
// Source:  docs/decisions/0024-offline-work-is-a-mode-of-the-daemon.md
#pragma once

#include <string>

#include "base/status.h"
#include "storage/recovery.h"

namespace delayd::storage {

// Ok if no recovery was cut short.
Status RefuseUnfinished(const std::string& directory);

// Adds to the report what a recovery that was cut short gave up, if there was one.
Status AddEarlierLoss(const std::string& directory, RecoveryReport* report);

// Durable when it returns: from now on only a recovery opens the store.
Status BeginRecovery(const std::string& directory, const RecoveryReport& report);

// The tables are durably mended, and the loss has been reported. Calling it again does no harm.
Status EndRecovery(const std::string& directory);

}  // namespace delayd::storage

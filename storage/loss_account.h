// storage/loss_account.h — the file RECOVERY in a data directory: what a recovery gives up, from
// before it cuts the first log until the tables are mended and the loss was told.
//
// What:    a log that has been cut tells nothing any more, and tables and marks agree again only
//          when the last step is done. While the file is there no ordinary open may go on; a
//          recovery that is begun again knows what the one before it has given up.
// Errors:  kDataLoss "damaged_store" for an open that may not go on; kUnavailable and others for
//          what the system refuses. A file that makes no sense is told in the report.
// Threads: one, with the directory locked.
// Source:  docs/decisions/0024-offline-work-is-a-mode-of-the-daemon.md
#pragma once

#include <string>

#include "base/status.h"
#include "storage/recovery.h"

namespace delayd::storage {

// Ok where no recovery was cut short.
Status RefuseUnfinished(const std::string& directory);

// What a recovery that was cut short has given up, if there was one, goes into the report too.
Status AddEarlierLoss(const std::string& directory, RecoveryReport* report);

// Durable when it returns: from now on only a recovery opens the store.
Status BeginRecovery(const std::string& directory, const RecoveryReport& report);

// The tables are mended, durably, and the loss was told. Once more it does no harm.
Status EndRecovery(const std::string& directory);

}  // namespace delayd::storage

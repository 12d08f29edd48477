// daemon/store_admin.h — verify and backup of a running store; a verify report as the protocol
// writes it.
//
// Errors:  in the answers; the findings of a verify are results, not errors.
// Threads: the function is called from the admin worker's thread, and reads a snapshot or takes a
//          checkpoint: commits go on meanwhile.
#pragma once

#include <string>

#include "base/clock.h"
#include "daemon/admin.h"
#include "storage/job_store.h"
#include "storage/verify.h"

namespace delayd {

// Store and clock must outlive the function; `store` comes from OpenRocksJobStore on `data_dir`,
// and is closed after the last call.
AdminFunction MakeStoreAdmin(storage::JobStore* store, std::string data_dir, const Clock* clock);

protocol::VerifyResult VerifyResultOf(const storage::VerifyReport& report);

}  // namespace delayd

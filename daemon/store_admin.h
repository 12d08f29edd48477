// daemon/store_admin.h — verify and backup of a running store, and what a verify found as the
// protocol says it.
//
// Errors:  in the answers; findings are results.
// Threads: the function is called from the admin worker's thread, and reads a snapshot or takes a
//          checkpoint: commits go on meanwhile.
#pragma once

#include "base/clock.h"
#include "daemon/admin.h"
#include "storage/job_store.h"
#include "storage/verify.h"

namespace delayd {

// Both must outlive the function; `store` comes from OpenRocksJobStore and is closed after the last
// call.
AdminFunction MakeStoreAdmin(storage::JobStore* store, const Clock* clock);

protocol::VerifyResult VerifyResultOf(const storage::VerifyReport& report);

}  // namespace delayd

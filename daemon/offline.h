// daemon/offline.h — verify and recover on a data directory that no daemon has open: the modes of
// delayd that delayctl runs.
//
// What:    writes JSON lines to stdout (protocol/store_json.h): progress, then one result or
//          problem. When started as root it switches to the owner of the directory, so that it
//          leaves no file there that the daemon could not open.
//          A recovery looks, beforehand, whether a daemon of this configuration would start.
// Errors:  in the last line, and as one of daemon/exit_codes.h.
// Threads: called before any other thread exists.
// Source:  docs/decisions/0024-offline-work-is-a-mode-of-the-daemon.md
#pragma once

#include "daemon/config.h"

namespace delayd {

// With `repair`, rebuilds what can be derived from other tables.
int VerifyOffline(const Config& config, bool repair);
// Without `accept_loss`, shows what would be lost and changes nothing.
int RecoverOffline(const Config& config, bool accept_loss);

}  // namespace delayd

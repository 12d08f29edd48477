// daemon/offline.h — verify and recover on a data directory that no daemon has open: the modes of
// delayd that delayctl runs.
//
// What:    writes JSON lines to stdout (protocol/store_json.h): progress, then one result or
//          problem. As root it goes on as the owner of the directory, so that no file is left there
//          that the daemon could not open.
// Errors:  in the last line, and as one of daemon/exit_codes.h.
// Threads: before any other.
// Source:  docs/decisions/0024-offline-work-is-a-mode-of-the-daemon.md
#pragma once

#include <string>

namespace delayd {

// With `repair`, puts right what can be derived from other tables.
int VerifyOffline(const std::string& data_dir, bool repair);
// Without `accept_loss`, shows what would be lost and changes nothing.
int RecoverOffline(const std::string& data_dir, bool accept_loss);

}  // namespace delayd

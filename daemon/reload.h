// daemon/reload.h — what SIGHUP changes: the level of the log, the settings of queues, the
// certificate and the tokens. All else waits for a restart, and the log says so.
//
// Errors:  told to the log. A file with a mistake changes nothing of what it holds.
// Threads: the core thread.
#pragma once

#include <optional>

#include "base/time.h"
#include "daemon/access.h"
#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/engine/command.h"
#include "daemon/tls_session.h"

namespace delayd {

// What the queues have from then on; none: the configuration has a mistake, and all is as it was.
// `running` is what the daemon was started with.
std::optional<engine::Configure> Reload(const ReadConfig& read_config,
                                        const Config& running,
                                        TlsDoor* tls,
                                        Access* access);

// Once for each certificate.
void WarnOfEnd(WallTime now, TlsDoor* tls);

}  // namespace delayd

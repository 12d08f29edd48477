// daemon/reload.h — what SIGHUP changes: the level of the log, the settings of queues, the
// certificate and the tokens. All else waits for a restart, and the log says so.
//
// Errors:  told to the log. A file with a mistake changes nothing of what it holds.
// Threads: the files are read on any, since a disk may be slow and a file may name tens of
//          thousands of queues; what they say is applied on the core thread.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "daemon/access.h"
#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/engine/command.h"
#include "daemon/tls_session.h"
#include "protocol/tls.h"

namespace delayd {

// What the files say now.
struct FilesRead {
  CommandLine line;
  std::string waiting;  // the keys that have changed and wait for a restart
  StatusOr<protocol::TlsContext::Ptr> certificate{protocol::TlsContext::Ptr()};  // null: no TLS
  StatusOr<Access::Tokens> tokens{Access::Tokens()};

  // Else something stays as it was.
  bool ok() const {
    return line.action == CommandLine::Action::kRun && certificate.ok() && tokens.ok();
  }
};

// `running` is what the daemon was started with.
FilesRead ReadFiles(const ReadConfig& read_config,
                    const Config& running,
                    const TlsDoor& tls,
                    const Access& access);

// What the queues have from then on; none: the configuration has a mistake, and all is as it was.
std::optional<engine::Configure> Apply(FilesRead files,
                                       const Config& running,
                                       TlsDoor* tls,
                                       Access* access);

// Once for each certificate that ends soon, and once for each that has ended.
void WarnOfEnd(WallTime now, TlsDoor* tls);

}  // namespace delayd

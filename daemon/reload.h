// daemon/reload.h — what SIGHUP changes: the log level, the settings of queues, the certificate and
// the tokens. Everything else waits for a restart, and the log says so.
//
// Errors:  logged. If a file has a mistake, none of its settings is applied.
// Threads: the files may be read on any thread, since a disk may be slow and a file may name tens
//          of thousands of queues; their contents are applied on the core thread.
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

// The contents of the files now.
struct FilesRead {
  CommandLine line;
  std::string waiting;  // the keys that have changed and wait for a restart
  StatusOr<protocol::TlsContext::Ptr> certificate{protocol::TlsContext::Ptr()};  // null: no TLS
  StatusOr<Access::Tokens> tokens{Access::Tokens()};

  // False: some of the settings stay as they were.
  bool ok() const {
    return line.action == CommandLine::Action::kRun && certificate.ok() && tokens.ok();
  }
};

// `running` is what the daemon was started with.
FilesRead ReadFiles(const ReadConfig& read_config,
                    const Config& running,
                    const TlsDoor& tls,
                    const Access& access);

// Returns the queues' new settings; none: the configuration has a mistake and nothing has changed.
std::optional<engine::Configure> Apply(FilesRead files,
                                       const Config& running,
                                       TlsDoor* tls,
                                       Access* access);

// Logs once each that the certificate is not valid yet, is about to expire, or has expired.
void WarnOfEnd(WallTime now, TlsDoor* tls);

}  // namespace delayd

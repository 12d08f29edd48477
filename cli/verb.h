// cli/verb.h — one verb of delayctl: what it takes, and what it does.
//
// Threads: one owner.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/context.h"
#include "cli/exit_code.h"
#include "cli/options.h"

namespace delayd::cli {

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string_view name() const = 0;
  // One line, for the list of verbs.
  virtual std::string_view summary() const = 0;
  // Examples and notes, below the options in --help.
  virtual std::string_view details() const = 0;

  virtual void Declare(Options* options) = 0;

  // Whether this call changes nothing, so that a user whose output was lost can simply repeat it.
  virtual bool only_reads() const { return false; }

  // Not OK: why it failed, for the error line; ExitCodeOf derives the exit code from it.
  virtual StatusOr<ExitCode> Run(Context* context) = 0;
};

}  // namespace delayd::cli

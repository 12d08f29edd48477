// daemon/command_line.h — what was asked of the program: flags, environment and file as one.
//
// What:    a flag goes before its DELAYD_ environment variable, that before the file, that before
//          the default. A file that was named must exist; the one at the default path need not.
// Errors:  all of them, one line each, ready to print.
// Threads: before any other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"

namespace delayd {

struct CommandLine {
  enum class Action : uint8_t {
    kRun,
    kCheckConfig,
    kVerify,   // daemon/offline.h
    kRecover,  // the same
    kPrint,
    kRefuse,
  };

  Action action = Action::kRun;
  Config config;
  std::string config_file;          // the one that was read; empty: none
  bool config_is_stream = false;    // it was a pipe or a terminal, and is read no second time
  std::string text;                 // kPrint: help or version
  std::vector<std::string> errors;  // kRefuse
  bool repair = false;              // kVerify
  bool accept_loss = false;         // kRecover
};

// Null for a variable that is not set.
using Environment = std::function<const char*(const std::string& name)>;

// Reads the configuration, from the same sources each time.
using ReadConfig = std::function<CommandLine()>;

CommandLine ReadCommandLine(int argc, const char* const* argv, const Environment& environment);

// For a reload: `read` once more, refused where the file that came `first` cannot come again.
CommandLine ReadAgain(const CommandLine& first, const ReadConfig& read);

std::string_view Version();  // "0.1.0"

}  // namespace delayd

// daemon/command_line.h — what the program is asked to do: flags, environment and file combined.
//
// What:    a flag overrides its DELAYD_ environment variable, which overrides the file, which
//          overrides the default. A file that is named explicitly must exist; the one at the
//          default path need not.
// Errors:  all of them, one line each, ready to print.
// Threads: called before any other thread exists.
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
    kRecover,  // likewise
    kPrint,
    kRefuse,
  };

  Action action = Action::kRun;
  Config config;
  std::string config_file;          // the one that was read; empty: none
  bool config_is_stream = false;    // a pipe or a terminal, which cannot be read a second time
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

// For a reload: calls `read` again; refused if the file read `first` cannot be read a second time.
CommandLine ReadAgain(const CommandLine& first, const ReadConfig& read);

// A warning for each entry ("NAME=value"; a null ends the list) whose name begins with DELAYD_, is
// that of no setting, but close to one. Other such names are those of workers and tests.
std::vector<std::string> MisspeltVariables(const char* const* environment);

std::string_view Version();  // "0.1.0"

}  // namespace delayd

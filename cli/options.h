// cli/options.h — what a verb takes on the command line, declared as data.
//
// What:    a verb declares its options with where their values go; cli/command_line.cc hands them
// to the option parser and fills them in. So no verb includes the parser.
// Errors:  a value that cannot be read is kInvalidArgument "usage" that begins with the option's
// name.
// Threads: one owner. The places pointed at outlive the Options.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "cli/local_time.h"

namespace delayd::cli {

struct Option {
  std::string names;    // "-f,--file"; a positional has no dash
  std::string metavar;  // empty: a flag
  std::string help;
  bool many = false;  // positionals: takes all of them
  std::function<Status(const std::string&)> set;
  std::vector<std::string> words = {};  // what TAB offers
  std::string usage = {};               // positionals: "DIR", "[FILE]", "(ID... | --key KEY)"
};

class Options {
 public:
  // `clock` reads the times that people write.
  explicit Options(const LocalClock& clock = {}) : clock_(clock) {}

  void Flag(std::string names, bool* out, std::string help);
  void Text(std::string names,
            std::string metavar,
            std::optional<std::string>* out,
            std::string help,
            std::vector<std::string> words = {});
  void Duration(std::string names, std::optional<Millis>* out, std::string help);
  void Time(std::string names, std::optional<WallTime>* out, std::string help);
  // For filters: a duration or RFC 3339 as it stands, or another time, as RFC 3339. A duration
  // counts from the daemon's now, which the clock here may not show.
  void TimeOrDuration(std::string names, std::optional<std::string>* out, std::string help);
  void Number(std::string names,
              uint64_t min,
              uint64_t max,
              std::optional<uint64_t>* out,
              std::string help);
  // `usage` is the name, in capitals, as the usage line has it: in brackets when it may be left
  // out, with dots when there may be many, in parentheses before what may take its place. It is the
  // verb that says what is missing.
  void Positional(std::string usage,
                  std::optional<std::string>* out,
                  std::string help,
                  std::vector<std::string> words = {});
  void Positionals(std::string usage, std::vector<std::string>* out, std::string help);
  // This flag and every word behind it: a command with its own options.
  void Rest(std::string name, std::string metavar, std::vector<std::string>* out, std::string help);

  // Options that must be there, as the usage line has them: "--data-dir DIR".
  void Needs(std::string usage) { needs_ = std::move(usage); }

  const std::vector<Option>& all() const { return options_; }

  // What the verb is to be given: " (ID... | --key KEY) --in DURATION".
  std::string Usage() const;

  // By "-f" or "--file", without a value; null: unknown.
  const Option* Find(std::string_view name) const;

  const std::string& rest_name() const { return rest_name_; }

  std::vector<std::string>* rest() const { return rest_; }

 private:
  LocalClock clock_;
  std::vector<Option> options_;
  std::string needs_;
  std::string rest_name_;
  std::vector<std::string>* rest_ = nullptr;
};

// The one of either that has this name; null: unknown.
const Option* FindOption(const Options& own, const Options& global, std::string_view name);

// A mistake in how the command was called; its cure is the verb's --help.
Status UsageError(std::string message);

// What an option declared with TimeOrDuration was given: a moment from `now`, or RFC 3339.
StatusOr<WallTime> ParseTimeOrDuration(std::string_view text, WallTime now);

}  // namespace delayd::cli

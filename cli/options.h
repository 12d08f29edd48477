// cli/options.h — what a verb takes on the command line, declared as data.
//
// What:    a verb declares its options and where their values go; cli/command_line.cc hands them to
// the option parser and fills them in. So no verb includes the parser.
// Errors:  a value that cannot be read is kInvalidArgument "usage", beginning with the option's
// name.
// Threads: one owner. The values' places must outlive the Options.
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
  bool many = false;  // a positional that takes all that follow
  std::function<Status(const std::string&)> set;
  std::vector<std::string> words = {};  // what TAB offers
  std::string usage = {};               // positionals: "DIR", "[FILE]", "(ID... | --key KEY)"
};

class Options {
 public:
  // `clock` interprets the times that people write.
  explicit Options(const LocalClock& clock = {}) : clock_(clock) {}

  void Flag(std::string names, bool* out, std::string help);
  void Text(std::string names,
            std::string metavar,
            std::optional<std::string>* out,
            std::string help,
            std::vector<std::string> words = {});
  void Duration(std::string names, std::optional<Millis>* out, std::string help);
  void Time(std::string names, std::optional<WallTime>* out, std::string help);
  // For filters: keeps a duration or RFC 3339 as it is, and turns any other time into RFC 3339. A
  // duration counts from the daemon's now, which the local clock may not show.
  void TimeOrDuration(std::string names, std::optional<std::string>* out, std::string help);
  void Number(std::string names,
              uint64_t min,
              uint64_t max,
              std::optional<uint64_t>* out,
              std::string help);
  // `usage` is the name in capitals, as in the usage line: in brackets when it may be left out,
  // with dots when there may be several, in parentheses together with what may take its place. The
  // verb itself reports a missing one.
  void Positional(std::string usage,
                  std::optional<std::string>* out,
                  std::string help,
                  std::vector<std::string> words = {});
  void Positionals(std::string usage, std::vector<std::string>* out, std::string help);
  // This flag and every word after it: a command with options of its own.
  void Rest(std::string name, std::string metavar, std::vector<std::string>* out, std::string help);

  // Required options, as in the usage line: "--data-dir DIR".
  void Needs(std::string usage) { needs_ = std::move(usage); }

  const std::vector<Option>& all() const { return options_; }

  // The verb's arguments and required options: " (ID... | --key KEY) --in DURATION".
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

// Finds the option in either set; null: unknown.
const Option* FindOption(const Options& own, const Options& global, std::string_view name);

// A mistake in how the command was called; points to the verb's --help.
Status UsageError(std::string message);

// The time that a TimeOrDuration option was given: a duration from `now`, or RFC 3339.
StatusOr<WallTime> ParseTimeOrDuration(std::string_view text, WallTime now);

}  // namespace delayd::cli

#include "cli/options.h"

#include <algorithm>
#include <charconv>

#include "protocol/duration.h"
#include "protocol/nearest.h"
#include "protocol/timestamp.h"

namespace delayd::cli {

Status UsageError(std::string message) {
  return InvalidArgument(std::move(message), "usage");
}

StatusOr<WallTime> ParseTimeOrDuration(std::string_view text, WallTime now) {
  const StatusOr<Millis> duration = protocol::ParseDuration(text);
  return duration.ok() ? now + *duration : protocol::ParseTimestamp(text);
}

const Option* Options::Find(std::string_view name) const {
  for (const Option& option : options_) {
    std::string_view names = option.names;
    while (!names.empty()) {
      const size_t comma = std::min(names.find(','), names.size());
      if (names.substr(0, comma) == name) {
        return &option;
      }
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }
  return nullptr;
}

const Option* FindOption(const Options& own, const Options& global, std::string_view name) {
  const Option* option = own.Find(name);
  return option != nullptr ? option : global.Find(name);
}

std::string Options::Usage() const {
  std::string text;
  for (const Option& option : options_) {
    text += option.usage.empty() ? "" : " " + option.usage;
  }
  return needs_.empty() ? text : text + " " + needs_;
}

void Options::Flag(std::string names, bool* out, std::string help) {
  options_.push_back({std::move(names), "", std::move(help), false, [out](const std::string&) {
                        *out = true;
                        return OkStatus();
                      }});
}

void Options::Text(std::string names,
                   std::string metavar,
                   std::optional<std::string>* out,
                   std::string help,
                   std::vector<std::string> words) {
  options_.push_back({std::move(names),
                      std::move(metavar),
                      std::move(help),
                      false,
                      [out](const std::string& text) {
                        *out = text;
                        return OkStatus();
                      },
                      std::move(words)});
}

void Options::Duration(std::string names, std::optional<Millis>* out, std::string help) {
  options_.push_back({std::move(names),
                      "DURATION",
                      std::move(help),
                      false,
                      [out](const std::string& text) -> Status {
                        DELAYD_ASSIGN_OR_RETURN(*out, protocol::ParseDuration(text));
                        return OkStatus();
                      }});
}

void Options::Time(std::string names, std::optional<WallTime>* out, std::string help) {
  options_.push_back({std::move(names),
                      "TIME",
                      std::move(help),
                      false,
                      [out, clock = clock_](const std::string& text) -> Status {
                        DELAYD_ASSIGN_OR_RETURN(*out, ParseLocalTime(text, clock));
                        return OkStatus();
                      }});
}

namespace {

// For a text that is neither a valid time nor a valid duration: which one was meant? Times have a
// colon, or begin with a year, a word such as tomorrow, or @; durations begin with a number or the
// P of ISO 8601.
bool IsMeantAsTime(const std::string& text) {
  if (text.find(':') != std::string::npos || (text.size() > 4 && text[4] == '-')) {
    return true;
  }
  const char first = text.empty() ? ' ' : text.front();
  return first == '@' ||
         (((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) && first != 'P');
}

}  // namespace

void Options::TimeOrDuration(std::string names, std::optional<std::string>* out, std::string help) {
  options_.push_back({std::move(names),
                      "TIME",
                      std::move(help),
                      false,
                      [out, clock = clock_](const std::string& text) -> Status {
                        const StatusOr<Millis> duration = protocol::ParseDuration(text);
                        if (duration.ok() || protocol::ParseTimestamp(text).ok()) {
                          *out = text;
                          return OkStatus();
                        }
                        if (const auto after = ParseFromNow(text); after && after->ok()) {
                          *out = protocol::FormatDuration(**after);
                          return OkStatus();
                        }
                        const StatusOr<WallTime> time = ParseLocalTime(text, clock);
                        if (time.ok()) {
                          *out = FormatUtc(*time);
                          return OkStatus();
                        }
                        return IsMeantAsTime(text) ? time.status() : duration.status();
                      }});
}

void Options::Number(
    std::string names, uint64_t min, uint64_t max, std::optional<uint64_t>* out, std::string help) {
  options_.push_back(
      {std::move(names), "N", std::move(help), false, [out, min, max](const std::string& text) {
         uint64_t number = 0;
         const char* end = text.data() + text.size();
         const auto [stop, error] = std::from_chars(text.data(), end, number);
         if (error != std::errc() || stop != end || number < min || number > max) {
           return UsageError(protocol::Quoted(text) + " is no whole number from " +
                             std::to_string(min) +
                             (max == UINT64_MAX ? " on" : " to " + std::to_string(max)));
         }
         *out = number;
         return OkStatus();
       }});
}

namespace {

std::string NameIn(std::string_view usage) {
  constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  usage.remove_prefix(std::min(usage.find_first_of(kCapitals), usage.size()));
  return std::string(usage.substr(0, usage.find_first_not_of(kCapitals)));
}

}  // namespace

void Options::Positional(std::string usage,
                         std::optional<std::string>* out,
                         std::string help,
                         std::vector<std::string> words) {
  Text(NameIn(usage), "TEXT", out, std::move(help), std::move(words));
  options_.back().usage = std::move(usage);
}

void Options::Positionals(std::string usage, std::vector<std::string>* out, std::string help) {
  options_.push_back({NameIn(usage), "TEXT", std::move(help), true, [out](const std::string& text) {
                        out->push_back(text);
                        return OkStatus();
                      }});
  options_.back().usage = std::move(usage);
}

void Options::Rest(std::string name,
                   std::string metavar,
                   std::vector<std::string>* out,
                   std::string help) {
  rest_name_ = name;
  rest_ = out;
  // Declared for the help text; its words never reach the parser.
  options_.push_back(
      {std::move(name), std::move(metavar), std::move(help), false, [](const std::string&) {
         return OkStatus();
       }});
}

}  // namespace delayd::cli

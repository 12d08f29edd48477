#include "cli/help.h"

#include <algorithm>

#include "base/option_words.h"
#include "cli/global_options.h"
#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kIntroduction =
    "delayctl: talk to delayd, the durable delayed-job store\n"
    "\n"
    "  delayctl enqueue --in 30m --queue orders --key order:1001 '{\"order_id\":1001}'\n"
    "  delayctl work --queue orders --exec ./cancel-order\n"
    "\n";

constexpr std::string_view kMore =
    "\n"
    "Help on one verb: delayctl VERB --help. Options for all, and exit codes: delayctl --help.\n";

constexpr std::string_view kConventions =
    "Durations: 500ms 90s 30m 1h30m 2d (1d is 24 h). Times: 2027-01-01T09:00:00Z, or +08:00;\n"
    "'2027-01-01 09:00', 'tomorrow 09:00', 'fri noon', 18:30 in the local zone, in UTC with "
    "--utc;\n"
    "+30m, @1800000000. Tables show local times with their offset; JSON is always UTC.\n"
    "Colour appears on a terminal only; NO_COLOR turns it off.\n"
    "\n";

std::string WithValue(const std::string& names, const Option& option) {
  return names + (option.metavar.empty() ? "" : " " + option.metavar);
}

std::string OptionLine(const std::string& names, const std::string& help) {
  return HelpLine(names, 28, help);
}

std::string GlobalOptionsText() {
  GlobalValues values;
  Options options;
  DeclareGlobals(&options, &values);
  std::string text = "\nOptions of all verbs:\n";
  const auto line = [&text](const std::string& names, const std::string& help) {
    text += HelpLine((names.starts_with("--") ? "    " : "") + names, 23, help);
  };
  for (const Option& option : options.all()) {
    std::string names = option.names;
    if (const size_t comma = names.find(','); comma != std::string::npos) {
      names.insert(comma + 1, " ");
    }
    line(WithValue(names, option), option.help);
  }
  line("-h, --help", "help");
  line("-V, --version", "version");
  return text + "\n";
}

std::string ExitCodesText() {
  std::string text = "Exit codes:";
  for (const ExitCodeMeaning& row : ExitCodeTable()) {
    const std::string item = " " + std::to_string(row.code) + " " + std::string(row.meaning) +
                             (row.code == kExitInterrupted ? ".\n" : ",");
    const size_t line = text.size() - std::min(text.size(), text.rfind('\n') + 1);
    text += (line + item.size() > 90 ? "\n" + item.substr(1) : item);
  }
  return text;
}

}  // namespace

std::string ShortHelp(const std::vector<std::unique_ptr<Verb>>& verbs) {
  constexpr size_t kNameWidth = 12;
  std::string text(kIntroduction);
  for (const auto& verb : verbs) {
    text += HelpLine(std::string(verb->name()), kNameWidth, verb->summary());
  }
  return text + std::string(kMore);
}

std::string LongHelp(const std::vector<std::unique_ptr<Verb>>& verbs) {
  return ShortHelp(verbs) + GlobalOptionsText() + std::string(kConventions) + ExitCodesText();
}

std::string VerbHelp(const Verb& verb, const Options& own, const Options& global) {
  std::string positionals;
  std::string options = OptionLine("-h,--help", "this text");
  std::string globals;
  for (const Option& option : own.all()) {
    if (option.names[0] == '-') {
      options += OptionLine(WithValue(option.names, option), option.help);
    } else {
      positionals += OptionLine(option.names, option.help);
    }
  }
  for (const Option& option : global.all()) {
    globals += OptionLine(WithValue(option.names, option), option.help);
  }
  return std::string(verb.summary()) + "\nUsage: delayctl " + std::string(verb.name()) +
         " [OPTIONS]" + own.Usage() + "\n\n" +
         (positionals.empty() ? "" : "Positionals:\n" + positionals + "\n") + "Options:\n" +
         options + "\nGlobal options:\n" + globals + "\n" + std::string(verb.details()) + "\n";
}

std::string VersionLine() {
  return "delayctl " + std::string(BuildVersion()) + "\n";
}

}  // namespace delayd::cli

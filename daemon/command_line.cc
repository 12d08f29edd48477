#include "daemon/command_line.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/option_words.h"
#include "daemon/config_text.h"
#include "daemon/exit_codes.h"
#include "protocol/nearest.h"

#include <CLI/CLI.hpp>

namespace delayd {

namespace {

constexpr std::string_view kConfigEnvironment = "DELAYD_CONFIG";

struct Flags {
  std::string config;
  std::map<std::string, std::string> settings;  // by the name of the key
  bool check_config = false;
  bool verify = false;
  bool repair = false;
  bool recover = false;
  bool accept_loss = false;
  bool version = false;
  bool help = false;
};

void Declare(CLI::App* app, Flags* flags) {
  app->set_help_flag();
  app->add_flag("-h,--help", flags->help, "Show this and exit");
  app->add_flag("--version", flags->version, "Show the version and exit");
  app->add_flag("--check-config", flags->check_config, "Check the configuration and exit");
  app->add_flag("--verify", flags->verify, "Check the store in data_dir and exit; JSON lines");
  app->add_flag("--repair", flags->repair, "With --verify: put right what can be derived");
  app->add_flag(
      "--recover", flags->recover, "Show what damage to the logs has cost and exit; JSON lines");
  app->add_flag("--accept-loss",
                flags->accept_loss,
                "With --recover: give up what is lost, so that the store opens again");
  // The last one wins: a flag that was appended to others is meant.
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app->add_option(
         "--config", flags->config, "Configuration file [" + std::string(kConfigEnvironment) + "]")
      ->type_name("FILE");
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.flag.empty()) {
      app->add_option(std::string(key.flag), flags->settings[std::string(key.name)])
          ->description(std::string(key.what))
          ->type_name(std::string(key.kind));
    }
  }
}

// Not CLI11's own help, whose layout differs from version to version.
std::string Help(const CLI::App& app) {
  std::ostringstream help;
  help << app.get_description() << "\nUsage: delayd [OPTIONS]\n\nOptions:\n";
  for (const CLI::Option* option : app.get_options()) {
    const bool is_flag = option->get_items_expected_max() == 0;
    help << HelpLine(option->get_name(false, true) + (is_flag ? "" : " " + option->get_type_name()),
                     33,
                     option->get_description());
  }
  help << "\nKeys of the configuration file (default " << kConfigPathDefault << "):\n";
  for (const ConfigKey& key : ConfigKeys()) {
    help << HelpLine(std::string(key.name) + " " + std::string(key.kind), 37, key.what);
  }
  help << "\nSingle queues: queues: { NAME: { ... } }, with any key of defaults.\n"
       << "\nA flag overrides the environment variable of its key (log.level: "
       << EnvironmentName("log.level")
       << "),\nthe variable overrides the file, and the file the default.\n\n"
       << kExitCodesHelp;
  return help.str();
}

// In reverse order, as CLI11 takes them.
std::vector<std::string> WordsOf(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words =
      WithEmptyValues({argv + std::min(argc, 1), argv + argc}, [&app](const std::string& name) {
        const CLI::Option* option = app.get_option_no_throw(name);
        return option != nullptr && option->get_items_expected_max() > 0;
      });
  std::reverse(words.begin(), words.end());
  return words;
}

// CLI11 lists all arguments that it did not expect, in an order of its own. The first flag among
// them is the cause, and a similar known flag is most likely what was meant.
std::string DescribeUsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  if (rest.empty()) {
    const std::string said = error.what();
    const bool lacks_value = error.get_name() == "ArgumentMismatch";
    return "delayd: " + (lacks_value ? said.substr(0, said.find(':')) + " needs a value" : said) +
           "; 'delayd --help' lists the flags";
  }
  const auto flag = std::find_if(
      rest.begin(), rest.end(), [](const std::string& text) { return text.starts_with('-'); });
  const std::string unknown = flag == rest.end() ? rest.front() : flag->substr(0, flag->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.push_back("--" + option->get_single_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string hint = protocol::DidYouMean(unknown, known);
  return "delayd: unknown argument " + protocol::Quoted(unknown) +
         (hint.empty() ? "; 'delayd --help' lists the flags" : hint);
}

// Allows one action at a time, and no flag that has no effect.
void ChooseAction(const Flags& flags, CommandLine* result) {
  if ((flags.check_config ? 1 : 0) + (flags.verify ? 1 : 0) + (flags.recover ? 1 : 0) > 1) {
    result->errors.emplace_back("delayd: give one of --check-config, --verify and --recover");
  }
  if (flags.repair && !flags.verify) {
    result->errors.emplace_back("delayd: --repair goes with --verify");
  }
  if (flags.accept_loss && !flags.recover) {
    result->errors.emplace_back("delayd: --accept-loss goes with --recover");
  }
  result->repair = flags.repair;
  result->accept_loss = flags.accept_loss;
  result->action = !result->errors.empty() ? CommandLine::Action::kRefuse
                   : flags.check_config    ? CommandLine::Action::kCheckConfig
                   : flags.verify          ? CommandLine::Action::kVerify
                   : flags.recover         ? CommandLine::Action::kRecover
                                           : CommandLine::Action::kRun;
}

// The file that a flag or the environment names; if neither does, the one at the default path, if
// it exists.
struct ConfigFile {
  std::string path;
  std::string named_by;
};

ConfigFile ChooseConfigFile(const CLI::App& app,
                            const Flags& flags,
                            const Environment& environment) {
  if (app.count("--config") != 0) {
    return {flags.config, "--config"};
  }
  const std::string variable(kConfigEnvironment);
  const char* named = environment(variable);
  return named != nullptr ? ConfigFile{named, variable}
                          : ConfigFile{std::string(kConfigPathDefault), ""};
}

void ReadConfigFile(const ConfigFile& file, ConfigReader* reader, CommandLine* result) {
  if (file.path.empty()) {
    result->errors.push_back(file.named_by + ": expected the path of a file, found nothing; " +
                             "leave it out to use " + std::string(kConfigPathDefault));
    return;
  }
  const StatusOr<ConfigText> read = ReadConfigText(file.path);
  if (read.ok()) {
    result->config_file = file.path;
    result->config_is_stream = read->is_stream;
    reader->ReadFile(file.path, read->text);
  } else if (!file.named_by.empty() || read.status().code() != StatusCode::kNotFound) {
    result->errors.push_back(read.status().message());
  }
}

}  // namespace

CommandLine ReadCommandLine(int argc, const char* const* argv, const Environment& environment) {
  CommandLine result;
  Flags flags;
  CLI::App app("delayd keeps jobs until they are due and hands them to workers.", "delayd");
  Declare(&app, &flags);
  try {
    app.parse(WordsOf(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    result.action = CommandLine::Action::kRefuse;
    result.errors.push_back(DescribeUsageError(app, error));
    return result;
  }
  if (flags.help || flags.version) {
    result.action = CommandLine::Action::kPrint;
    result.text = flags.help ? Help(app) : "delayd " + std::string(Version()) + "\n";
    return result;
  }
  ConfigReader reader;
  ReadConfigFile(ChooseConfigFile(app, flags, environment), &reader, &result);
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string variable = EnvironmentName(key.name);
    if (const char* text = environment(variable); text != nullptr) {
      reader.Set(key, text, variable);
    }
    if (!key.flag.empty() && app.count(std::string(key.flag)) != 0) {
      reader.Set(key, flags.settings[std::string(key.name)], std::string(key.flag));
    }
  }
  reader.Finish();
  result.errors.insert(result.errors.end(), reader.errors().begin(), reader.errors().end());
  result.config = reader.config();
  ChooseAction(flags, &result);
  return result;
}

CommandLine ReadAgain(const CommandLine& first, const ReadConfig& read) {
  CommandLine refusal;
  refusal.action = CommandLine::Action::kRefuse;
  // The contents of a pipe are gone. Reading it again would give no settings, or block the daemon.
  if (first.config_is_stream) {
    refusal.errors.push_back(first.config_file +
                             " was a pipe, which can be read once; start the daemon with a file to "
                             "reload its settings");
    return refusal;
  }
  if (IsPipe(first.config_file)) {
    refusal.errors.push_back(first.config_file +
                             " is a pipe now, which can be read once; put the file back");
    return refusal;
  }
  CommandLine again = read();
  // The file at the default path is optional, but it was there before: somebody is moving it, or
  // editing it.
  if (again.errors.empty() && again.config_file.empty() && !first.config_file.empty()) {
    refusal.errors.push_back(first.config_file +
                             " is not there any more; put it back, or restart the daemon to have "
                             "all defaults");
    return refusal;
  }
  return again;
}

std::vector<std::string> MisspeltVariables(const char* const* environment) {
  std::vector<std::string> names{std::string(kConfigEnvironment)};
  for (const ConfigKey& key : ConfigKeys()) {
    names.push_back(EnvironmentName(key.name));
  }
  std::vector<std::string_view> known;
  for (const std::string_view name : names) {
    known.push_back(name.substr(kEnvironmentPrefix.size()));
  }
  std::vector<std::string> warnings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kEnvironmentPrefix)) {
      continue;
    }
    // The prefix does not count as letters in common.
    const std::string_view word = name.substr(kEnvironmentPrefix.size());
    const std::string_view nearest = protocol::Nearest(word, known);
    if (!nearest.empty() && nearest != word) {
      warnings.push_back(protocol::Quoted(name) +
                         " in the environment is no setting and is ignored; did you mean '" +
                         std::string(kEnvironmentPrefix) + std::string(nearest) + "'?");
    }
  }
  return warnings;
}

std::string_view Version() {
  return DELAYD_VERSION;
}

}  // namespace delayd

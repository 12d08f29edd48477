#include "cli/command_line.h"

#include <algorithm>

#include "base/option_words.h"
#include "cli/global_options.h"
#include "cli/help.h"
#include "cli/synonyms.h"
#include "protocol/nearest.h"

#include <CLI/CLI.hpp>

namespace delayd::cli {
namespace {

using protocol::Quoted;

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Hands options to the parser. The first bad value is kept in `error`.
void AddOptions(const Options& options, CLI::App* app, Status* error) {
  for (const Option& option : options.all()) {
    const std::string shown = option.names.substr(option.names.rfind(',') + 1);
    const auto set = [&option, shown, error](const std::string& text) {
      const Status status = option.set(text);
      if (!status.ok() && error->ok()) {
        *error = option.names[0] == '-' ? status.WithContext(shown) : status;
      }
    };
    if (option.metavar.empty()) {
      app->add_flag_callback(option.names, [set] { set(""); });
    } else if (option.many) {
      const auto set_all = [set](const std::vector<std::string>& texts) {
        std::for_each(texts.begin(), texts.end(), set);
      };
      app->add_option_function<std::vector<std::string>>(option.names, set_all);
    } else {
      app->add_option_function<std::string>(option.names, set);
    }
  }
}

// Includes the arguments, whose names are in capitals.
std::vector<std::string_view> LongNames(const Options& own, const Options& global) {
  std::vector<std::string_view> names = {"--help"};
  for (const Options* options : {&own, &global}) {
    for (const Option& option : options->all()) {
      names.push_back(std::string_view(option.names).substr(option.names.rfind(',') + 1));
    }
  }
  return names;
}

Status UnexpectedArgument(const std::string& word, const std::vector<std::string_view>& names) {
  const auto takes = [&names](auto fits) { return std::ranges::any_of(names, fits); };
  const bool arguments = takes([](std::string_view name) { return name[0] != '-'; });
  const bool queue = takes([](std::string_view name) { return name == "--queue"; });
  return UsageError("unexpected argument " + Quoted(word) +
                    (arguments ? "; quote a text that has spaces"
                     : queue   ? "; a queue is named with --queue"
                               : "; it takes options only"));
}

Status Unexpected(const std::string& word, const std::vector<std::string_view>& names) {
  if (word.size() < 2 || word[0] != '-') {
    return UnexpectedArgument(word, names);
  }
  const std::string name = word.substr(0, word.find('='));
  return UsageError("unknown option " + Quoted(name) + Suggestion(name, names));
}

// Where the value of a short option begins in "-k", "-korder:1" or "-qkorder:1"; npos: none of the
// word's options takes one.
size_t ValueInShort(const std::string& word, const Options& own, const Options& global) {
  for (size_t i = 1; i < word.size(); ++i) {
    const Option* option = FindOption(own, global, std::string("-") + word[i]);
    if (option == nullptr) {
      break;
    }
    if (!option->metavar.empty()) {
      return i + 1;
    }
  }
  return std::string::npos;
}

// Refuses "-key order:1" for --key, which the parser would take for -k with the value "ey", and
// "-k=order:1" or "-qk=order:1", which would have the value "=order:1".
Status CheckDashes(const std::vector<std::string>& words,
                   const Options& own,
                   const Options& global,
                   const std::vector<std::string_view>& names) {
  bool value = false;
  for (const std::string& word : words) {
    if (word == "--") {
      break;
    }
    const std::string name = "-" + word.substr(0, word.find('='));
    if (!value && name.size() > 3 && name.starts_with("--") && !word.starts_with("--") &&
        std::find(names.begin(), names.end(), name) != names.end()) {
      return Unexpected(word, {name});
    }
    if (value || word.empty() || word[0] != '-') {
      value = false;
      continue;
    }
    if (word.starts_with("--")) {
      const Option* option = FindOption(own, global, word);
      value = option != nullptr && !option->metavar.empty();
      continue;
    }
    const size_t begin = ValueInShort(word, own, global);
    if (begin < word.size() && word[begin] == '=') {
      return UsageError("the '=' of " + Quoted(word) + " would be a part of the value; write " +
                        word.substr(0, begin) + " and the value as a word of its own");
    }
    value = begin == word.size();
  }
  return OkStatus();
}

// Runs the parser; its exceptions end here.
Status RunParser(CLI::App* app,
                 std::vector<std::string> words,
                 const std::vector<std::string_view>& names,
                 bool* asks_for_help) {
  // CLI11 takes its words from the back.
  std::reverse(words.begin(), words.end());
  try {
    app->parse(words);
  } catch (const CLI::CallForHelp&) {
    *asks_for_help = true;
  } catch (const CLI::ExtrasError&) {
    // After "--" nothing is an option.
    const std::vector<std::string> left = app->remaining();
    return left.front() == "--" && left.size() > 1 ? UnexpectedArgument(left[1], names)
                                                   : Unexpected(left.front(), names);
  } catch (const CLI::ArgumentMismatch& mismatch) {
    const std::string words_of_parser = mismatch.what();
    const std::string option = words_of_parser.substr(0, words_of_parser.find(':'));
    return UsageError(words_of_parser.find("missing") != std::string::npos
                          ? option + " needs a value"
                          : option + " is given twice; keep one");
  } catch (const CLI::Error& other) {
    return UsageError(other.what());
  }
  return OkStatus();
}

// Cuts off --exec and everything after it, which is another program's command line.
void TakeRest(const Options& options, std::vector<std::string>* words) {
  if (options.rest() == nullptr) {
    return;
  }
  const std::string with_value = options.rest_name() + "=";
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string word = (*words)[i];
    const bool joined = word.starts_with(with_value);
    if (word != options.rest_name() && !joined) {
      continue;
    }
    if (joined) {
      options.rest()->push_back(word.substr(with_value.size()));
    }
    const auto behind = words->begin() + static_cast<std::ptrdiff_t>(i) + 1;
    options.rest()->insert(options.rest()->end(), behind, words->end());
    words->resize(i);
    return;
  }
}

Status ParseVerb(Verb* verb,
                 std::vector<std::string> words,
                 LocalClock clock,
                 Invocation* invocation) {
  // Times are read while options are parsed, so look for --utc first. After "--" it is a payload.
  const auto end = std::find(words.begin(), words.end(), "--");
  if (std::find(words.begin(), end, "--utc") != end) {
    clock.zone = cctz::utc_time_zone();
    clock.unknown_zone.clear();
  }
  Options own(clock);
  Options global(clock);
  GlobalValues globals;
  verb->Declare(&own);
  DeclareGlobals(&global, &globals);
  TakeRest(own, &words);

  CLI::App app;
  Status bad_value;
  AddOptions(own, &app, &bad_value);
  AddOptions(global, &app, &bad_value);
  const std::vector<std::string_view> names = LongNames(own, global);
  DELAYD_RETURN_IF_ERROR(CheckDashes(words, own, global, names));
  words = WithEmptyValues(words, [&](const std::string& name) {
    const Option* option = FindOption(own, global, name);
    return option != nullptr && name[0] == '-' && !option->metavar.empty();
  });
  bool asks_for_help = false;
  DELAYD_RETURN_IF_ERROR(RunParser(&app, std::move(words), names, &asks_for_help));
  DELAYD_RETURN_IF_ERROR(bad_value);
  DELAYD_ASSIGN_OR_RETURN(invocation->globals, ApplyGlobals(globals));
  if (asks_for_help) {
    invocation->help = VerbHelp(*verb, own, global);
  }
  invocation->verb = asks_for_help ? nullptr : verb;
  return OkStatus();
}

Status UnknownVerb(const std::string& word, const std::vector<std::unique_ptr<Verb>>& verbs) {
  std::vector<std::string_view> names;
  for (const auto& verb : verbs) {
    names.push_back(verb->name());
  }
  const std::string meant = Suggestion(word, names);
  return UsageError("unknown verb " + Quoted(word) +
                    (meant.empty() ? "; see: delayctl --help" : meant));
}

Status OnlyGlobalOptions(std::vector<std::string> words) {
  Options own;
  Options global;
  GlobalValues values;
  bool version = false;
  own.Flag("-V,--version", &version, "");
  DeclareGlobals(&global, &values);
  CLI::App app;
  Status bad_value;
  AddOptions(own, &app, &bad_value);
  AddOptions(global, &app, &bad_value);
  bool asks_for_help = false;
  DELAYD_RETURN_IF_ERROR(RunParser(&app, std::move(words), LongNames(own, global), &asks_for_help));
  return bad_value;
}

// What looks like an unknown verb may be the value of an option that only a verb has.
Status CheckBeforeVerb(const std::vector<std::string>& words) {
  const Status status = OnlyGlobalOptions(words);
  const bool is_told = status.ok() || status.message().find("did you mean") != std::string::npos;
  return is_told ? status
                 : UsageError(status.message() + "; a verb's own options stand behind the verb");
}

// Without a verb, the words ask for help or the version, or are a mistake.
StatusOr<Invocation> WithoutVerb(const std::vector<std::string>& words,
                                 const std::vector<std::unique_ptr<Verb>>& verbs) {
  Invocation invocation;
  if (words.empty()) {
    invocation.help = ShortHelp(verbs);
  } else if (Contains(words, "-V") || Contains(words, "--version")) {
    invocation.help = VersionLine();
  } else if (Contains(words, "-h") || Contains(words, "--help")) {
    invocation.help = LongHelp(verbs);
  } else {
    DELAYD_RETURN_IF_ERROR(OnlyGlobalOptions(words));
    return UsageError("no verb given; see: delayctl --help");
  }
  return invocation;
}

// Whether the next word is this option's value. In a bundle such as "-qo" only the last takes one.
bool WantsValue(const Options& options, const std::string& word) {
  const bool is_bundle = word.size() > 2 && word[0] == '-' && word[1] != '-';
  const Option* option = options.Find(word);
  for (size_t i = 1; is_bundle && i < word.size(); ++i) {
    option = options.Find(std::string("-") + word[i]);
    if (option == nullptr || (!option->metavar.empty() && i + 1 < word.size())) {
      return false;
    }
  }
  return option != nullptr && !option->metavar.empty();
}

}  // namespace

Words SplitVerb(const std::vector<std::string>& args) {
  GlobalValues values;
  Options globals;
  DeclareGlobals(&globals, &values);
  Words words;
  bool value = false;
  for (const std::string& arg : args) {
    const bool is_option = arg.size() > 1 && arg[0] == '-';
    if (!words.named && !value && !is_option) {
      words.verb = arg;
      words.named = true;
      words.before = words.others.size();
      continue;
    }
    value = !value && WantsValue(globals, arg);
    words.others.push_back(arg);
  }
  return words;
}

bool AsksForJson(const std::vector<std::string>& args) {
  std::string previous;
  for (const std::string& arg : args) {
    std::string_view output;
    if (previous == "-o" || previous == "-qo" || previous == "--output") {
      output = arg;
    } else if (arg.starts_with("-o")) {
      output = std::string_view(arg).substr(2);
    } else if (arg.starts_with("--output=")) {
      output = std::string_view(arg).substr(9);
    }
    if (ParseJsonFormat(output).has_value()) {
      return true;
    }
    previous = arg;
  }
  return false;
}

StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& args,
                                      const std::vector<std::unique_ptr<Verb>>& verbs,
                                      const LocalClock& clock) {
  Words words = SplitVerb(args);
  if (!words.named) {
    return WithoutVerb(words.others, verbs);
  }
  if (words.verb == "help") {
    const Words about = SplitVerb(words.others);
    if (!about.named || about.verb == "help") {
      return WithoutVerb({"--help"}, verbs);
    }
    words = {.verb = about.verb, .named = true, .others = {"--help"}};
  }
  for (const auto& verb : verbs) {
    if (verb->name() != words.verb) {
      continue;
    }
    Invocation invocation;
    const Status status = ParseVerb(verb.get(), std::move(words.others), clock, &invocation);
    if (!status.ok()) {
      return UsageError(std::string(verb->name()) + ": " + status.message() + " (see: delayctl " +
                        std::string(verb->name()) + " --help)");
    }
    return invocation;
  }
  words.others.resize(words.before);
  DELAYD_RETURN_IF_ERROR(CheckBeforeVerb(words.others));
  return UnknownVerb(words.verb, verbs);
}

}  // namespace delayd::cli

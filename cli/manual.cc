#include "cli/manual.h"

#include <algorithm>

#include "cli/global_options.h"

namespace delayd::cli {
namespace {

// Escapes all markup, also at the beginning of a line.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (std::string_view("\\*_`#<>[]|").find(c) != std::string_view::npos ||
        (begins_line && std::string_view("-.;").find(c) != std::string_view::npos)) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

// "-f,--file" with FILE: "*-f*, *--file* _FILE_"; a positional: "_PAYLOAD_".
std::string Names(const Option& option) {
  std::string out;
  if (option.names[0] != '-') {
    return "_" + Plain(option.names) + "_";
  }
  std::string_view names = option.names;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    out += (out.empty() ? "*" : ", *") + Plain(names.substr(0, comma)) + "*";
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return option.metavar.empty() ? out : out + " _" + Plain(option.metavar) + "_";
}

std::string OptionList(const Options& options) {
  std::string out;
  for (const Option& option : options.all()) {
    out += Names(option) + "\n\t" + Plain(option.help) + "\n\n";
  }
  return out;
}

// The usage line with markup: "(_ID_... | *--key* _KEY_)".
std::string Marked(std::string_view usage) {
  std::string out;
  while (!usage.empty()) {
    const bool is_name = usage.front() >= 'A' && usage.front() <= 'Z';
    const bool is_option = usage.front() == '-';
    size_t end = 1;
    while ((is_name || is_option) && end < usage.size() &&
           std::string_view(" .|()[]").find(usage[end]) == std::string_view::npos) {
      ++end;
    }
    const std::string word(usage.substr(0, end));
    out += is_name ? "_" + Plain(word) + "_" : is_option ? "*" + Plain(word) + "*" : word;
    usage.remove_prefix(end);
  }
  return out;
}

std::string Synopsis(const Verb& verb, const Options& options) {
  return "*delayctl " + Plain(verb.name()) + "* [_options_]" + Marked(options.Usage());
}

// Prose as it is, examples as a block of their own.
std::string Details(std::string_view details) {
  size_t examples = details.find("Example");
  while (examples != 0 && examples != std::string_view::npos && details[examples - 1] != '\n') {
    examples = details.find("Example", examples + 1);
  }
  const std::string_view words = details.substr(0, examples);
  std::string out = words.empty() ? "" : Plain(words) + "\n";
  if (examples != std::string_view::npos) {
    const std::string_view lines = details.substr(details.find('\n', examples) + 1);
    out += "```\n" + std::string(lines) + (lines.ends_with('\n') ? "" : "\n") + "```\n\n";
  }
  return out;
}

std::string Verbs(const std::vector<std::unique_ptr<Verb>>& verbs) {
  std::string out;
  for (const auto& verb : verbs) {
    Options options;
    verb->Declare(&options);
    out += "## " + std::string(verb->name()) + "\n\n" + Synopsis(*verb, options) + "\n\n" +
           Plain(verb->summary()) + ".\n\n" + OptionList(options) + Details(verb->details());
  }
  return out;
}

std::string GlobalOptions() {
  GlobalValues values;
  Options options;
  DeclareGlobals(&options, &values);
  return OptionList(options) +
         "*-h*, *--help*\n\thelp on delayctl, or on the verb\n\n"
         "*-V*, *--version*\n\tthe version\n\n";
}

std::string ExitCodes() {
  std::string out;
  for (const ExitCodeMeaning& row : ExitCodeTable()) {
    out += "*" + std::to_string(row.code) + "*\n\t" + Plain(row.meaning) + "\n\n";
  }
  return out;
}

}  // namespace

std::optional<std::string> ManualPart(std::string_view part,
                                      const std::vector<std::unique_ptr<Verb>>& verbs) {
  if (part == "verbs") {
    return Verbs(verbs);
  }
  if (part == "options") {
    return GlobalOptions();
  }
  if (part == "exit-codes") {
    return ExitCodes();
  }
  return std::nullopt;
}

}  // namespace delayd::cli

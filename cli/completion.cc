#include "cli/completion.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/global_options.h"

namespace delayd::cli {
namespace {

// bash splits "--queue=or" and "unix:/x" at the signs; the other shells leave them whole.
std::vector<std::string> JoinAtSigns(const std::vector<std::string>& words, bool* split) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "=" && !joined.empty() && joined.back().starts_with("--")) {
      joined.back() += '=';
      if (i + 1 < words.size()) {
        joined.back() += words[++i];
      }
      *split = i + 1 == words.size();
      continue;
    }
    if (words[i] == ":" && !joined.empty()) {
      joined.back() += ':';
      if (i + 1 < words.size()) {
        joined.back() += words[++i];
      }
      continue;
    }
    joined.push_back(words[i]);
  }
  return joined;
}

class Completer {
 public:
  Completer(const std::vector<std::unique_ptr<Verb>>& verbs, const QueueNames& queues)
      : verbs_(verbs), queues_(queues) {
    DeclareGlobals(&globals_, &values_);
  }

  Completion Run(const std::vector<std::string>& words) {
    bool split = false;
    std::vector<std::string> before = JoinAtSigns(words, &split);
    current_ = before.empty() ? "" : before.back();
    if (!before.empty()) {
      before.pop_back();
    }
    const Words found = SplitVerb(before);
    for (const auto& verb : verbs_) {
      if (verb->name() == found.verb) {
        verb_ = verb.get();
        verb_->Declare(&own_);
      }
    }
    Read(before);
    if (IsBehindRest(before)) {
      done_.files = true;
    } else if (waiting_ != nullptr) {
      ValuesOf(*waiting_, "");
    } else if (const size_t equals = current_.find('=');
               current_.starts_with("--") && equals != std::string::npos) {
      const std::string name = current_.substr(0, equals);
      const Option* joined = Find(name);
      current_ = current_.substr(equals + 1);
      if (joined != nullptr) {
        ValuesOf(*joined, split ? "" : name + "=");
      }
    } else if (current_.starts_with('-')) {
      OptionNames();
    } else if (found.verb.empty() || found.verb == "help") {
      VerbNames(found.verb.empty());
    } else if (verb_ != nullptr) {
      Positional();
    }
    return std::move(done_);
  }

 private:
  const Option* Find(std::string_view name) const { return FindOption(own_, globals_, name); }

  // Applies the words before the cursor: the global options tell how to reach the daemon. If the
  // word being typed is an option's value, that option is left in waiting_.
  void Read(const std::vector<std::string>& before) {
    for (const std::string& word : before) {
      if (waiting_ != nullptr) {
        static_cast<void>(waiting_->set(word));
        waiting_ = nullptr;
        continue;
      }
      if (word.size() < 2 || word[0] != '-') {
        ++arguments_;
        continue;
      }
      if (word.size() > 2 && word[1] != '-') {
        ReadBundle(word);
        continue;
      }
      const size_t equals = word.find('=');
      const Option* option = Find(word.substr(0, equals));
      if (option == nullptr || option->metavar.empty()) {
        continue;
      }
      if (equals == std::string::npos) {
        waiting_ = option;
      } else {
        static_cast<void>(option->set(word.substr(equals + 1)));
      }
    }
  }

  // "-qo json", "-qojson": short options in one word. The first that takes a value ends them: what
  // is behind it in the word, or the next word, is its value.
  void ReadBundle(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const Option* option = Find(std::string("-") + word[i]);
      if (option == nullptr) {
        return;
      }
      if (option->metavar.empty()) {
        continue;
      }
      if (i + 1 == word.size()) {
        waiting_ = option;
      } else {
        static_cast<void>(option->set(word.substr(i + 1)));
      }
      return;
    }
  }

  // What follows --exec is another program's command line.
  bool IsBehindRest(const std::vector<std::string>& before) const {
    return own_.rest() != nullptr &&
           std::any_of(before.begin(), before.end(), [this](const std::string& word) {
             return word == own_.rest_name() || word.starts_with(own_.rest_name() + "=");
           });
  }

  void Offer(const std::string& text, std::string_view help, const std::string& prefix = "") {
    if (text.starts_with(current_)) {
      done_.candidates.push_back({prefix + text, std::string(help)});
    }
  }

  void Values(std::string_view kind, const std::string& prefix) {
    if (kind == "QUEUE") {
      for (const std::string& queue : queues_(values_.globals)) {
        Offer(queue, "queue", prefix);
      }
    } else if (kind == "FILE" || kind == "DIR") {
      done_.files = true;
    }
  }

  void ValuesOf(const Option& option, const std::string& prefix) {
    for (const std::string& word : option.words) {
      Offer(word, "", prefix);
    }
    if (option.words.empty()) {
      Values(option.metavar, prefix);
    }
  }

  void OptionNames() {
    const Options* const all[] = {&own_, &globals_};
    for (const Options* options : all) {
      for (const Option& option : options->all()) {
        if (option.names[0] == '-') {
          Offer(option.names.substr(option.names.rfind(',') + 1), option.help);
        }
      }
    }
    Offer("--help", "what this takes, with examples");
  }

  void VerbNames(bool with_help) {
    for (const auto& verb : verbs_) {
      Offer(std::string(verb->name()), verb->summary());
    }
    if (with_help) {
      Offer("help", "Help on one verb");
    }
  }

  // Offers the positional whose turn it is; after the last there is nothing to offer.
  void Positional() {
    size_t others = arguments_ - 1;  // without the verb
    for (const Option& option : own_.all()) {
      if (option.names[0] == '-' || (others > 0 && !option.many && others-- > 0)) {
        continue;
      }
      Values(option.names, "");
      for (const std::string& word : option.words) {
        Offer(word, option.help);
      }
      return;
    }
  }

  const std::vector<std::unique_ptr<Verb>>& verbs_;
  const QueueNames& queues_;
  GlobalValues values_;
  Options globals_;
  Options own_;
  Verb* verb_ = nullptr;
  const Option* waiting_ = nullptr;
  size_t arguments_ = 0;
  std::string current_;
  Completion done_;
};

constexpr std::string_view kBash =
    R"script(# bash completion of delayctl; made by: delayctl completion bash
_delayctl() {
  # As it was typed: the shell has not expanded ~ yet.
  local line program=${COMP_WORDS[0]/#'~/'/$HOME/}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      compopt -o default 2> /dev/null
    else
      printf -v line %q "${line%%$'\t'*}"
      COMPREPLY+=("$line")
    fi
  done < <("$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _delayctl delayctl
)script";

constexpr std::string_view kZsh = R"script(#compdef delayctl
# zsh completion of delayctl; made by: delayctl completion zsh
_delayctl() {
  local line files help
  local -a candidates
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      files=yes
    else
      help=${line#*$'\t'}
      candidates+=("${${line%%$'\t'*}//:/\\:}${help:+:$help}")
    fi
  done < <("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2> /dev/null)
  if (( ${#candidates} )); then
    _describe -V delayctl candidates
  fi
  if [[ -n $files ]]; then
    # --file=PATH: of what stands behind the sign.
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    _files
  fi
}
if [[ $funcstack[1] == _delayctl ]]; then
  _delayctl "$@"
else
  compdef _delayctl delayctl
fi
)script";

constexpr std::string_view kFish =
    R"script(# fish completion of delayctl; made by: delayctl completion fish
function __delayctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $words[1] __complete $words[2..-1] "$current" 2> /dev/null)
        if test "$line" = ':files'
            # --file=PATH: of what stands behind the sign, which is put before it again.
            set -l flag (string match -r -- '^--[^=]*=' "$current")
            set -l path (string replace -r -- '^--[^=]*=' '' "$current")
            for found in (__fish_complete_path "$path")
                printf '%s%s\n' "$flag" $found
            end
        else
            printf '%s\n' $line
        end
    end
end
complete -c delayctl -f -a '(__delayctl_complete)'
)script";

}  // namespace

Completion Complete(const std::vector<std::string>& words,
                    const std::vector<std::unique_ptr<Verb>>& verbs,
                    const QueueNames& queues) {
  return Completer(verbs, queues).Run(words);
}

std::string CompletionText(const Completion& completion) {
  std::string text;
  for (const Candidate& candidate : completion.candidates) {
    text += EscapeControls(candidate.text) + "\t" + candidate.help + "\n";
  }
  return completion.files ? text + ":files\n" : text;
}

std::optional<std::string_view> CompletionScript(std::string_view shell) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kScripts = {
      {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}}};
  for (const auto& [name, script] : kScripts) {
    if (name == shell) {
      return script;
    }
  }
  return std::nullopt;
}

}  // namespace delayd::cli

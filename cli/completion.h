// cli/completion.h — what could stand at the cursor, and the shell scripts that ask for it.
//
// What:    the scripts know nothing about verbs: the shell calls `delayctl __complete WORDS...` at
//          each TAB, and the answer comes from the verbs' own declarations and, for names of
//          queues, from the daemon. So a script never goes stale.
// Errors:  none; a daemon that does not answer has no queues.
// Threads: one owner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"

namespace delayd::cli {

struct Candidate {
  std::string text;
  std::string help;
};

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;  // offer file names too
};

// The queues of the daemon that these options lead to.
using QueueNames = std::function<std::vector<std::string>(const Globals& globals)>;

// `words` excludes the program's name; the last one is being typed and may be empty.
Completion Complete(const std::vector<std::string>& words,
                    const std::vector<std::unique_ptr<Verb>>& verbs,
                    const QueueNames& queues);
// One line "text<TAB>help" per candidate, then ":files" if file names are wanted.
std::string CompletionText(const Completion& completion);
// The script for bash, zsh or fish; none for another shell.
std::optional<std::string_view> CompletionScript(std::string_view shell);

}  // namespace delayd::cli

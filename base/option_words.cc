#include "base/option_words.h"

#include <algorithm>

namespace delayd {

std::vector<std::string> WithEmptyValues(
    const std::vector<std::string>& words,
    const std::function<bool(const std::string& name)>& takes_value) {
  std::vector<std::string> split;
  bool value = false;
  bool ended = false;
  for (const std::string& word : words) {
    const bool is_empty = word.size() > 3 && word.find('=') == word.size() - 1;
    const std::string name = is_empty ? word.substr(0, word.size() - 1) : word;
    const bool is_option = !value && !ended && takes_value(name);
    ended = ended || (!value && word == "--");
    value = is_option && !is_empty;
    split.push_back(is_option ? name : word);
    if (is_option && is_empty) {
      split.emplace_back();
    }
  }
  return split;
}

std::string HelpLine(std::string words, size_t width, std::string_view what) {
  words.resize(std::max(width, words.size() + 1), ' ');
  return "  " + words + std::string(what) + "\n";
}

}  // namespace delayd

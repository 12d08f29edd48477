#include "protocol/beanstalk/reply_writer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace delayd::beanstalk {
namespace {

constexpr size_t kDigitsMax = 20;

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether every version of YAML reads it as text: it begins with a letter and is not a keyword.
// Text that begins otherwise may be a number, a date or an indicator.
bool IsPlain(std::string_view text) {
  constexpr auto kYamlWords = std::to_array<std::string_view>(
      {"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
  if (text.empty() || !IsLetter(text[0])) {
    return false;
  }
  const bool harmless = std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') ||
           std::string_view("-+/;.$_()").find(c) != std::string_view::npos;
  });
  const auto same = [text](std::string_view word) {
    return word.size() == text.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
             return a == static_cast<char>(b | 0x20);
           });
  };
  return harmless && std::none_of(kYamlWords.begin(), kYamlWords.end(), same);
}

}  // namespace

void AppendNumber(uint64_t number, std::string* out) {
  std::array<char, kDigitsMax> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out->append(digits.data(), end);
}

void AppendLine(std::string_view word, uint64_t number, std::string* out) {
  out->append(word);
  out->push_back(' ');
  AppendNumber(number, out);
  out->append("\r\n");
}

void AppendLine(std::string_view word, std::string_view name, std::string* out) {
  out->append(word);
  out->push_back(' ');
  out->append(name);
  out->append("\r\n");
}

void AppendJob(std::string_view word, uint64_t id, std::string_view body, std::string* out) {
  out->reserve(out->size() + word.size() + 2 * kDigitsMax + body.size() + 6);  // grows once
  out->append(word);
  out->push_back(' ');
  AppendNumber(id, out);
  out->push_back(' ');
  AppendNumber(body.size(), out);
  out->append("\r\n");
  out->append(body);
  out->append("\r\n");
}

void AppendOk(std::string_view body, std::string* out) {
  AppendLine("OK", body.size(), out);
  out->append(body);
  out->append("\r\n");
}

void YamlMap::Add(std::string_view key, uint64_t number) {
  text_.append(key);
  text_.append(": ");
  AppendNumber(number, &text_);
  text_.push_back('\n');
}

void YamlMap::Add(std::string_view key, std::string_view text) {
  if (IsPlain(text)) {
    AddWord(key, text);
    return;
  }
  text_.append(key);
  text_.append(": \"");
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      text_.push_back('\\');
    }
    text_.push_back(c);
  }
  text_.append("\"\n");
}

void YamlMap::AddWord(std::string_view key, std::string_view word) {
  text_.append(key);
  text_.append(": ");
  text_.append(word);
  text_.push_back('\n');
}

void YamlList::Add(std::string_view name) {
  text_.append("- ");
  text_.append(name);
  text_.push_back('\n');
}

}  // namespace delayd::beanstalk

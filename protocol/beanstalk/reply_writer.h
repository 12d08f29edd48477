// protocol/beanstalk/reply_writer.h — writes the replies of the beanstalk protocol, and the YAML of
// its stats.
//
// Threads: stateless.
// Cost:    appends to the caller's buffer; no other allocation.
// Source:  docs/protocol.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayd::beanstalk {

namespace reply {

inline constexpr std::string_view kBadFormat = "BAD_FORMAT\r\n";
inline constexpr std::string_view kUnknownCommand = "UNKNOWN_COMMAND\r\n";
inline constexpr std::string_view kOutOfMemory = "OUT_OF_MEMORY\r\n";
inline constexpr std::string_view kInternalError = "INTERNAL_ERROR\r\n";
inline constexpr std::string_view kDraining = "DRAINING\r\n";
inline constexpr std::string_view kJobTooBig = "JOB_TOO_BIG\r\n";
inline constexpr std::string_view kExpectedCrlf = "EXPECTED_CRLF\r\n";
inline constexpr std::string_view kNotFound = "NOT_FOUND\r\n";
inline constexpr std::string_view kDeleted = "DELETED\r\n";
inline constexpr std::string_view kReleased = "RELEASED\r\n";
inline constexpr std::string_view kBuried = "BURIED\r\n";
inline constexpr std::string_view kTouched = "TOUCHED\r\n";
inline constexpr std::string_view kKicked = "KICKED\r\n";
inline constexpr std::string_view kPaused = "PAUSED\r\n";
inline constexpr std::string_view kTimedOut = "TIMED_OUT\r\n";
inline constexpr std::string_view kDeadlineSoon = "DEADLINE_SOON\r\n";
inline constexpr std::string_view kNotIgnored = "NOT_IGNORED\r\n";
// Our extensions.
inline constexpr std::string_view kKeyConflict = "KEY_CONFLICT\r\n";
inline constexpr std::string_view kJobReserved = "JOB_RESERVED\r\n";

}  // namespace reply

void AppendNumber(uint64_t number, std::string* out);
// "INSERTED 5", "WATCHING 2", "KICKED 7", ... with CR LF.
void AppendLine(std::string_view word, uint64_t number, std::string* out);
void AppendLine(std::string_view word, std::string_view name, std::string* out);
// "RESERVED 5 3" or "FOUND 5 3", and the body.
void AppendJob(std::string_view word, uint64_t id, std::string_view body, std::string* out);
// "OK 12", and the body.
void AppendOk(std::string_view body, std::string* out);

// The body of a stats reply: "---" and lines "key: value".
class YamlMap {
 public:
  YamlMap() : text_("---\n") {}

  void Add(std::string_view key, uint64_t number);
  // Quotes only text that a YAML reader would take for a number or a keyword: old clients split
  // lines at ": " and do not understand quotes.
  void Add(std::string_view key, std::string_view text);
  void AddWord(std::string_view key, std::string_view word);  // as it is

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The body of a list reply: "---" and lines "- name".
class YamlList {
 public:
  YamlList() : text_("---\n") {}

  void Add(std::string_view name);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace delayd::beanstalk

// daemon/log.h — what the daemon says about itself, on stderr.
//
// What:    one line an event: a message that is the same every time, and fields. Payloads, keys of
//          clients and lease tokens are not logged. Of one message, errors excepted, at most 20
//          lines a second are written; how many were left out is told with the next one, or by
//          TellLeftOut.
// Units:   times in UTC with milliseconds.
// Errors:  none; a line that cannot be written is lost. One that nobody takes, as where a terminal
//          is stopped or the reader of a pipe stands still, is left out, and told with the next one
//          that is taken: the daemon must not wait for who reads its log.
// Threads: Start once, before other threads exist; the rest from any thread.
// Cost:    a line below the level costs one comparison; others a poll(2) and a write(2). An error
//          may wait to be taken, 100 ms a second at most.
// Source:  under systemd, a line begins with its priority ("<6>") instead of the time, as
//          sd-daemon(3) has it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace delayd::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };
enum class Format : uint8_t { kText, kJson };

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
};

struct Field {
  Field(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}

  Field(std::string_view field_name, const char* text)
      : Field(field_name, std::string_view(text)) {}

  Field(std::string_view field_name, const std::string& text)
      : Field(field_name, std::string_view(text)) {}

  template <typename Number>

  requires std::is_integral_v<Number> Field(std::string_view field_name, Number number)
      : name(field_name), value(static_cast<int64_t>(number)) {}

  std::string_view name;
  std::variant<std::string_view, int64_t> value;
};

// What a line of an error begins with that is written before the log is started: "<3>" where
// stderr is the journal, else nothing.
std::string_view ErrorPrefix();

void Start(const Options& options);
// Before that nothing is written.
bool Started();
void SetLevel(Level level);

// Of each message how many lines were left out and not told yet; once a second, and at the end.
void TellLeftOut();

// Events since the start by level, also those below options.level.
std::array<uint64_t, 4> Counts();

void Debug(std::string_view message, std::initializer_list<Field> fields = {});
void Info(std::string_view message, std::initializer_list<Field> fields = {});
void Warn(std::string_view message, std::initializer_list<Field> fields = {});
void Error(std::string_view message, std::initializer_list<Field> fields = {});

// What stands behind the time: `info message name=value name="two words"`, or the members of a JSON
// object. Control characters are escaped, so that no value can fake a line.
std::string FormatLine(Format format,
                       Level level,
                       std::string_view message,
                       std::initializer_list<Field> fields);

}  // namespace delayd::log

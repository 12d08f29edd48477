// daemon/log.h — what the daemon says about itself, on stderr.
//
// What:    one line per event: a constant message, and fields. Payloads, keys of clients and lease
//          tokens are not logged. Except for errors, at most 20 lines a second are written per
//          message; the next line, or TellLeftOut, says how many were left out.
// Units:   times in UTC with milliseconds.
// Errors:  none; a line that cannot be written is lost. A line that nobody reads, because a
//          terminal is stopped or the reader of a pipe stands still, is left out and counted in the
//          next line that is written: the daemon must not wait for the reader of its log.
// Threads: Start once, before other threads exist; the rest from any thread.
// Cost:    a line below the level costs one comparison; others a poll(2) and a write(2). Errors may
//          wait for the reader, for at most 100 ms in each second.
// Source:  under systemd, a line begins with its priority ("<6>") instead of the time, as
//          sd-daemon(3) describes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace delayd::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };
enum class Format : uint8_t { kText, kJson };

// The longest text as written; the rest is cut off. No line has more than three long texts, so a
// pipe that is writable takes a line at once (PIPE_BUF).
inline constexpr size_t kTextBytesMax = 1000;

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

// The prefix of an error line that is written before the log is started: "<3>" if stderr is the
// journal, else nothing.
std::string_view ErrorPrefix();

void Start(const Options& options);
// Nothing is written before Start.
bool Started();
void SetLevel(Level level);

// Logs for each message how many lines were left out since the last report. Called once a second,
// and at the end.
void TellLeftOut();

// Events since the start by level, also those below options.level.
std::array<uint64_t, 4> Counts();

void Debug(std::string_view message, std::initializer_list<Field> fields = {});
void Info(std::string_view message, std::initializer_list<Field> fields = {});
void Warn(std::string_view message, std::initializer_list<Field> fields = {});
void Error(std::string_view message, std::initializer_list<Field> fields = {});
// Why a daemon that serves nobody ends: its texts are not cut, since the cure is at their end. A
// long line waits for its reader.
void LastError(std::string_view message, std::initializer_list<Field> fields);

// The text after the time: `info message name=value name="two words"`, or the members of a JSON
// object. Control characters are escaped, so that no value can forge a line, and long texts are
// cut.
std::string FormatLine(Format format,
                       Level level,
                       std::string_view message,
                       std::initializer_list<Field> fields,
                       size_t text_bytes_max = kTextBytesMax);

}  // namespace delayd::log

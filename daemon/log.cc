#include "daemon/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/utf8.h"

#include <sys/stat.h>

namespace delayd::log {

namespace {

// Limit per message, so that a client cannot fill the log. Errors are not limited: each reports a
// different failure, and reports it once.
constexpr uint64_t kLinesPerSecond = 20;

// Errors may wait for the reader of the log, for this long in each second altogether.
constexpr std::chrono::milliseconds kErrorsWait{100};

// The lines of one message in the current second.
struct Window {
  std::chrono::steady_clock::time_point begin;
  uint64_t lines = 0;
  uint64_t left_out = 0;
  Level level = Level::kInfo;  // of the lines left out
};

struct State {
  Format format = Format::kText;
  std::atomic<Level> level{Level::kInfo};
  bool journal = false;
  std::array<std::atomic<uint64_t>, 4> counts{};
  std::unique_ptr<spdlog::logger> logger;
  std::mutex mutex;
  std::map<std::string, Window, std::less<>> windows;  // by message; guarded by mutex
  std::chrono::steady_clock::time_point second_begin;  // for kErrorsWait; guarded by mutex
  std::chrono::steady_clock::duration waited{};        // in that second; guarded by mutex
  std::atomic<uint64_t> untaken{0};                    // lines that stderr did not take
};

// Lives as long as the process: the last line may come from a thread that outlives main's locals.
State& Global() {
  static auto* const state = new State;
  return *state;
}

std::string_view LevelName(Level level) {
  constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warn", "error"};
  return kNames[static_cast<size_t>(level)];
}

spdlog::level::level_enum ToSpdlog(Level level) {
  constexpr std::array kLevels = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

// The priorities of syslog(3): error 3, warning 4, info 6, debug 7.
std::string_view JournalPrefix(Level level) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"<7>", "<6>", "<4>", "<3>"};
  return kPrefixes[static_cast<size_t>(level)];
}

// JOURNAL_STREAM alone is not enough: processes that write elsewhere inherit it too, for example
// the shell in a terminal that runs as a service.
bool IsJournal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe)

  struct stat info {};

  return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 &&
         stream == std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

// A byte that belongs to no character becomes U+FFFD: JSON and the journal accept only UTF-8.
void AppendEscaped(std::string* out, std::string_view text, size_t bytes_max) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const size_t begin = out->size();
  while (!text.empty()) {
    if (out->size() - begin >= bytes_max) {
      *out += "...";
      return;
    }
    const size_t length = Utf8Length(text);
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      *out += "\\u00";
      *out += kHex[byte >> 4];
      *out += kHex[byte & 15];
    } else {
      *out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

void AppendQuoted(std::string* out, std::string_view text, size_t bytes_max = kTextBytesMax) {
  *out += '"';
  AppendEscaped(out, text, bytes_max);
  *out += '"';
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) {
    return true;
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == '\\' || c == '=' || c == 0x7f) {
      return true;
    }
  }
  return false;
}

void AppendValue(std::string* out, Format format, const Field& field, size_t bytes_max) {
  if (const auto* number = std::get_if<int64_t>(&field.value)) {
    *out += std::to_string(*number);
    return;
  }
  const auto text = std::get<std::string_view>(field.value);
  if (format == Format::kJson || NeedsQuotes(text)) {
    AppendQuoted(out, text, bytes_max);
  } else {
    AppendEscaped(out, text, bytes_max);
  }
}

// Whether another line of this message may be written, and how many were left out since the last
// one.
std::pair<bool, uint64_t> Admit(State* state, Level level, std::string_view message) {
  const auto now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(state->mutex);
  auto found = state->windows.find(message);
  if (found == state->windows.end()) {
    found = state->windows.emplace(std::string(message), Window{.begin = now}).first;
  }
  Window& window = found->second;
  if (now - window.begin >= std::chrono::seconds(1)) {
    window.begin = now;
    window.lines = 0;
  }
  if (window.lines >= kLinesPerSecond) {
    ++window.left_out;
    window.level = level;
    return {false, 0};
  }
  ++window.lines;
  return {true, std::exchange(window.left_out, 0)};
}

// A pipe that is writable has room for PIPE_BUF bytes, 4,096, and no line is longer, except
// LastError's.
bool StderrTakes(int wait_ms) {
  pollfd entry{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, wait_ms) != 0;
}

bool IsTaken(State* state, Level level) {
  if (StderrTakes(0)) {
    return true;
  }
  if (level != Level::kError) {
    return false;
  }
  const std::scoped_lock lock(state->mutex);
  const auto begin = std::chrono::steady_clock::now();
  if (begin - state->second_begin >= std::chrono::seconds(1)) {
    state->second_begin = begin;
    state->waited = {};
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(kErrorsWait - state->waited);
  const bool taken = left.count() > 0 && StderrTakes(static_cast<int>(left.count()));
  state->waited += std::chrono::steady_clock::now() - begin;
  return taken;
}

// `stands_for`: how many lines are missing if nobody takes this one.
void Put(Level level,
         std::string_view message,
         std::initializer_list<Field> fields,
         uint64_t stands_for = 1,
         size_t text_bytes_max = kTextBytesMax) {
  State& state = Global();
  if (!IsTaken(&state, level)) {
    state.untaken.fetch_add(stands_for, std::memory_order_relaxed);
    return;
  }
  std::string line = FormatLine(state.format, level, message, fields, text_bytes_max);
  if (state.journal) {
    line.insert(0, JournalPrefix(level));
  } else if (state.format == Format::kJson) {
    line.erase(0, 1);  // the pattern opens the object, so that the time comes first
  }
  state.logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void PutLeftOut(Level level, std::string_view message, uint64_t count) {
  Put(level, "lines were left out", {{"message", message}, {"count", count}}, count);
}

void Write(Level level,
           std::string_view message,
           std::initializer_list<Field> fields,
           size_t text_bytes_max = kTextBytesMax) {
  State& state = Global();
  state.counts[static_cast<size_t>(level)].fetch_add(1, std::memory_order_relaxed);
  if (state.logger == nullptr || level < state.level.load(std::memory_order_relaxed)) {
    return;
  }
  const auto [admitted, left_out] =
      level == Level::kError ? std::pair(true, uint64_t{0}) : Admit(&state, level, message);
  if (!admitted) {
    return;
  }
  if (state.untaken.load(std::memory_order_relaxed) > 0 && IsTaken(&state, level)) {
    const uint64_t count = state.untaken.exchange(0);
    Put(Level::kWarn, "lines were left out while nobody read the log", {{"count", count}}, count);
  }
  if (left_out > 0) {
    PutLeftOut(level, message, left_out);
  }
  Put(level, message, fields, /*stands_for=*/1, text_bytes_max);
}

}  // namespace

std::string_view ErrorPrefix() {
  return IsJournal() ? JournalPrefix(Level::kError) : "";
}

void Start(const Options& options) {
  State& state = Global();
  state.format = options.format;
  state.level = options.level;
  state.logger =
      std::make_unique<spdlog::logger>("delayd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  state.logger->set_level(spdlog::level::trace);  // Write has already checked the level
  state.journal = IsJournal();
  std::string pattern = "%v";  // the journal records the time itself
  if (!state.journal) {
    pattern = options.format == Format::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v)"
                                              : "%Y-%m-%dT%H:%M:%S.%eZ %v";
  }
  state.logger->set_pattern(pattern, spdlog::pattern_time_type::utc);
}

bool Started() {
  return Global().logger != nullptr;
}

void TellLeftOut() {
  State& state = Global();
  std::map<std::string, Window, std::less<>> silent;
  {
    const std::scoped_lock lock(state.mutex);
    for (auto& [message, window] : state.windows) {
      if (window.left_out > 0) {
        silent.emplace(message, window);
        window.left_out = 0;
      }
    }
  }
  for (const auto& [message, window] : silent) {
    PutLeftOut(window.level, message, window.left_out);
  }
}

std::array<uint64_t, 4> Counts() {
  std::array<uint64_t, 4> counts{};
  for (size_t level = 0; level < counts.size(); ++level) {
    counts[level] = Global().counts[level].load(std::memory_order_relaxed);
  }
  return counts;
}

void SetLevel(Level level) {
  Global().level.store(level, std::memory_order_relaxed);
}

void Debug(std::string_view message, std::initializer_list<Field> fields) {
  Write(Level::kDebug, message, fields);
}

void Info(std::string_view message, std::initializer_list<Field> fields) {
  Write(Level::kInfo, message, fields);
}

void Warn(std::string_view message, std::initializer_list<Field> fields) {
  Write(Level::kWarn, message, fields);
}

void Error(std::string_view message, std::initializer_list<Field> fields) {
  Write(Level::kError, message, fields);
}

void LastError(std::string_view message, std::initializer_list<Field> fields) {
  Write(Level::kError, message, fields, std::string::npos);
}

std::string FormatLine(Format format,
                       Level level,
                       std::string_view message,
                       std::initializer_list<Field> fields,
                       size_t text_bytes_max) {
  std::string line;
  if (format == Format::kJson) {
    line += "{\"level\":";
    AppendQuoted(&line, LevelName(level));
    line += ",\"message\":";
    AppendQuoted(&line, message);
  } else {
    line += LevelName(level);
    line += ' ';
    AppendEscaped(&line, message, text_bytes_max);
  }
  for (const Field& field : fields) {
    if (format == Format::kJson) {
      line += ',';
      AppendQuoted(&line, field.name);
      line += ':';
    } else {
      line += ' ';
      line += field.name;
      line += '=';
    }
    AppendValue(&line, format, field, text_bytes_max);
  }
  if (format == Format::kJson) {
    line += '}';
  }
  return line;
}

}  // namespace delayd::log

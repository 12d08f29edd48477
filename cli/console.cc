#include "cli/console.h"

#include <cstdio>

#include "protocol/problem.h"

namespace delayd::cli {
namespace {

// The length of the UTF-8 sequence at the front of `text`; 0 when it is none or a C1 control,
// which some terminals obey.
size_t PrintableLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  }
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : length;
}

}  // namespace

std::string EscapeControls(std::string_view text, bool keep_lines) {
  std::string out;
  while (!text.empty()) {
    size_t length = PrintableLength(text);
    if (length == 0 && keep_lines && (text.front() == '\n' || text.front() == '\t')) {
      length = 1;
    }
    if (length > 0) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    char escaped[5];
    std::snprintf(escaped,
                  sizeof escaped,
                  "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    out += escaped;
    text.remove_prefix(1);
  }
  return out;
}

Status Console::CheckOut(bool flush) {
  if (flush) {
    out_.flush();
  }
  if (out_.good()) {
    return OkStatus();
  }
  out_failure_told_ = true;
  return Internal("cannot write to stdout; is the disk full, or its reader gone?");
}

Status Console::Line(std::string_view line) {
  const std::lock_guard lock(mutex_);
  out_ << line << '\n';
  return CheckOut(true);
}

void Console::Say(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (!quiet_) {
    err_ << line << '\n' << std::flush;
  }
}

void Console::Error(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (json_errors_) {
    err_ << protocol::ProblemToJson(status) << '\n' << std::flush;
    return;
  }
  err_ << "delayctl: " << EscapeControls(status.message()) << '\n' << std::flush;
}

void Console::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  err_ << text << std::flush;
}

void Console::Bytes(std::string_view bytes) {
  out_ << (traits_.out_is_terminal ? EscapeControls(bytes, true) : bytes);
}

std::string Console::Bold(std::string_view text) const {
  return traits_.color ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace delayd::cli

#include "cli/console.h"

#include <cstdio>

#include "base/utf8.h"
#include "protocol/problem.h"

namespace delayd::cli {
namespace {

// The length of the character at the front of `text`; 0 when it is no UTF-8, or a control, of which
// some terminals obey C1 too.
size_t PrintableLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = Utf8Length(text);
  const bool control = length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f
                                   : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return control ? 0 : length;
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
    Tell(std::string(line) + '\n');
  }
}

void Console::Error(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (json_errors_) {
    Tell(protocol::ProblemToJson(status) + '\n');
    return;
  }
  Tell("delayctl: " + EscapeControls(status.message()) + '\n');
}

void Console::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  Tell(text);
}

// A disk that was full for one line may have room for the next: a worker writes for months.
void Console::Tell(std::string_view text) {
  err_.clear();
  err_ << text << std::flush;
}

void Console::Bytes(std::string_view bytes) {
  out_ << (traits_.out_is_terminal ? EscapeControls(bytes, true) : bytes);
}

std::string_view Console::BeforeView() const {
  // From the top, then whatever was below.
  return traits_.dumb ? "\n" : "\x1b[H\x1b[2J";
}

std::string Console::Bold(std::string_view text) const {
  return traits_.color ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace delayd::cli

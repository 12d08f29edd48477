#include "cli/console.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/utf8.h"
#include "cli/table.h"
#include "protocol/problem.h"

#include <sys/ioctl.h>

namespace delayd::cli {
namespace {

// The width without the sequences that Bold adds; all other control bytes are escaped.
size_t PlainWidth(std::string_view line) {
  size_t width = 0;
  while (!line.empty()) {
    const size_t escape = std::min(line.find('\x1b'), line.size());
    width += DisplayWidth(line.substr(0, escape));
    line.remove_prefix(escape);
    const size_t end = line.find('m');
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return width;
}

}  // namespace

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

Status Console::Rest(Millis time) {
  pollfd reader{.fd = traits_.out_fd, .events = 0, .revents = 0};
  poll(&reader, 1, static_cast<int>(std::min<int64_t>(time.count(), INT_MAX)));
  if ((reader.revents & (POLLERR | POLLHUP)) != 0) {
    raise(SIGPIPE);
    out_.setstate(std::ios::badbit);
  }
  return CheckOut(false);
}

Status Console::Line(std::string_view line) {
  const std::lock_guard lock(mutex_);
  out_ << line << '\n';
  return CheckOut(true);
}

void Console::Say(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (!quiet_ && !json_) {
    Tell(EscapeControls(line) + '\n');
  }
}

void Console::Warn(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (!quiet_) {
    Tell((json_ ? protocol::ProblemToJson(status) : EscapeControls(status.message())) + '\n');
  }
}

void Console::Error(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (json_) {
    Tell(protocol::ProblemToJson(status) + '\n');
    return;
  }
  Tell("delayctl: " + EscapeControls(status.message()) + '\n');
}

void Console::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  Tell(text);
}

// Clears an earlier failure: a worker writes for months, and a disk that was full for one line may
// have room for the next.
void Console::Tell(std::string_view text) {
  err_.clear();
  err_ << text << std::flush;
}

void Console::Bytes(std::string_view bytes) {
  out_ << (traits_.out_is_terminal ? EscapeControls(bytes, true) : bytes);
}

void Console::MeasureScreen() {
  winsize size{};
  if (traits_.screen_fd >= 0 && ioctl(traits_.screen_fd, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    traits_.width = size.ws_col;
    traits_.height = size.ws_row;
  }
}

std::string Console::FitToScreen(std::string_view text) const {
  std::vector<std::string_view> lines;
  std::vector<size_t> rows;  // screen rows used up to the end of each line
  size_t used = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    used += 1 + (std::max<size_t>(PlainWidth(line), 1) - 1) / traits_.width;
    lines.push_back(line);
    rows.push_back(used);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  // The last row is the cursor's.
  const size_t room = traits_.height == 0 ? SIZE_MAX : std::max<size_t>(traits_.height, 3) - 1;
  size_t shown = lines.size();
  while (shown > 0 && rows[shown - 1] + (shown < lines.size() ? 1 : 0) > room) {
    --shown;
  }
  std::string fitting;
  for (size_t i = 0; i < shown; ++i) {
    fitting.append(lines[i]).append("\n");
  }
  return shown == lines.size() ? fitting
                               : fitting + "and " + std::to_string(lines.size() - shown) +
                                     (lines.size() - shown == 1 ? " more line\n" : " more lines\n");
}

void Console::View(const std::function<void()>& print) {
  MeasureScreen();
  std::stringbuf view;
  // Changing the buffer clears a failure.
  const std::ios::iostate state = out_.rdstate();
  std::streambuf* real = out_.rdbuf(&view);
  print();
  out_.rdbuf(real);
  out_.setstate(state);
  if (traits_.dumb) {
    out_ << '\n' << view.view();
    return;
  }
  // Cursor to the top left, then clear the screen.
  out_ << "\x1b[H\x1b[2J" << FitToScreen(view.view());
}

std::string Console::Bold(std::string_view text) const {
  return traits_.color ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace delayd::cli

// cli/console.h — where output goes: data to stdout, messages to stderr, and nothing to a terminal
// that could harm it.
//
// Errors:  kInternal from CheckOut; cli/run.cc checks once more at the end.
// Threads: Line, Say, Warn and Error may be called from any thread; the rest from one.
#pragma once

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "base/utf8.h"

namespace delayd::cli {

class Console {
 public:
  struct Traits {
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    bool color = false;
    bool dumb = false;  // a terminal that prints control sequences instead of obeying them
    bool utf8 = false;  // the terminal's locale can show more than ASCII
    size_t width = 80;
    size_t height = 0;   // 0: unlimited
    int screen_fd = -1;  // a terminal whose size may change; -1: none
    int out_fd = -1;     // stdout, to notice when its reader goes away; -1: do not check
  };

  Console(std::ostream& out, std::ostream& err, Traits traits)
      : out_(out), err_(err), traits_(traits) {}

  std::ostream& out() { return out_; }

  // Whether all writes so far have succeeded; `flush` includes what is still buffered.
  Status CheckOut(bool flush);

  // Waits for `time`, or until the reader of stdout goes away. Then it ends as a write would, by
  // SIGPIPE or with an error.
  Status Rest(Millis time);

  // CheckOut has already reported a failure.
  bool out_failure_told() const { return out_failure_told_; }

  const Traits& traits() const { return traits_; }

  void set_quiet(bool quiet) { quiet_ = quiet; }

  // With JSON, stderr carries problems only, without messages between them.
  void set_json(bool json) { json_ = json; }

  // A line of data on stdout, flushed.
  Status Line(std::string_view line);

  // A line of text on stdout. Control characters are escaped: it may be shown on a terminal, and
  // hold whatever a server has answered.
  void Words(std::string_view line) { out_ << EscapeControls(line) << '\n'; }

  // A message on stderr, unless -q or JSON was asked for.
  void Say(std::string_view line);
  // A failure that does not stop the command, unless -q: a message, or a problem in JSON where JSON
  // was asked for.
  void Warn(const Status& status);
  // The error line: "delayctl: cause; cure", or a problem in JSON where JSON was asked for.
  void Error(const Status& status);
  // Raw text to stderr, for progress bars.
  void Draw(std::string_view text);

  // Bytes of a payload: unchanged into a file or pipe, escaped on a terminal.
  void Bytes(std::string_view bytes);

  // A view that replaces the last one: what `print` writes to `out`, cut to fit the screen.
  // Otherwise its beginning, which matters most, would scroll away.
  void View(const std::function<void()>& print);

  std::string Bold(std::string_view text) const;

 private:
  void Tell(std::string_view text);
  void MeasureScreen();
  std::string FitToScreen(std::string_view text) const;

  std::mutex mutex_;
  std::ostream& out_;
  std::ostream& err_;
  Traits traits_;
  bool quiet_ = false;
  bool json_ = false;
  bool out_failure_told_ = false;
};

}  // namespace delayd::cli

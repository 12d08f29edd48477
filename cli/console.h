// cli/console.h — where output goes: data to stdout, words to stderr, and what a terminal is
// spared.
//
// Errors:  kInternal from CheckOut; cli/run.cc looks at the end too.
// Threads: Line, Say, Warn and Error may be called from any; the rest from one.
#pragma once

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

class Console {
 public:
  struct Traits {
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    bool color = false;
    bool dumb = false;  // a terminal that prints control sequences in place of obeying them
    bool utf8 = false;  // the terminal's locale can show more than ASCII
    size_t width = 80;
    size_t height = 0;   // 0: without end
    int screen_fd = -1;  // of a terminal whose size may change; -1: none
    int out_fd = -1;     // of stdout, whose reader may go; -1: not looked at
  };

  Console(std::ostream& out, std::ostream& err, Traits traits)
      : out_(out), err_(err), traits_(traits) {}

  std::ostream& out() { return out_; }

  // Whether what was written so far could be, and what a buffer holds of it if `flush`.
  Status CheckOut(bool flush);

  // Waits so long, unless whoever reads stdout goes: it ends then as if something were written, by
  // SIGPIPE or not OK.
  Status Rest(Millis time);

  // CheckOut has told of it.
  bool out_failure_told() const { return out_failure_told_; }

  const Traits& traits() const { return traits_; }

  void set_quiet(bool quiet) { quiet_ = quiet; }

  // Whoever asked for JSON gets problems alone on stderr, and no words between them.
  void set_json(bool json) { json_ = json; }

  // A line of data on stdout, at once.
  Status Line(std::string_view line);
  // A line of words on stderr, unless -q or JSON was asked for.
  void Say(std::string_view line);
  // What goes on all the same, unless -q: words, or a problem where JSON was asked for.
  void Warn(const Status& status);
  // The error line: "delayctl: cause; cure", or a problem in JSON where JSON was asked for.
  void Error(const Status& status);
  // Raw text to stderr, for progress bars.
  void Draw(std::string_view text);

  // Bytes of a payload: as they are into a file or pipe, escaped on a terminal.
  void Bytes(std::string_view bytes);

  // A view that takes the place of the last one: what `print` writes to `out`, as far as the screen
  // has room. Else its beginning, which counts most, would scroll away.
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

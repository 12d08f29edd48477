// delayctl: the command line of delayd.
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/signal_mask.h"
#include "base/standard_fds.h"
#include "cli/console.h"
#include "cli/last_words.h"
#include "cli/run.h"

#include <sys/ioctl.h>

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The value of TZ if it names no known zone; cctz then uses UTC. That includes POSIX forms without
// a name, such as CST-8, which the C library would understand.
std::string UnknownZone() {
  std::string name = Environment("TZ");
  name.erase(0, name.starts_with(':') ? 1 : 0);
  cctz::time_zone zone;
  const bool known = name.empty() || name == "localtime" || cctz::load_time_zone(name, &zone);
  return known ? std::string() : name;
}

// As in locale(7), the first of these that is set decides.
bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = Environment(name);
    if (!value.empty()) {
      std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
      });
      return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
    }
  }
  return false;
}

delayd::cli::Console::Traits TerminalTraits() {
  delayd::cli::Console::Traits traits;
  traits.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  traits.err_is_terminal = isatty(STDERR_FILENO) != 0;
  traits.dumb = Environment("TERM") == "dumb";
  traits.color = traits.out_is_terminal && Environment("NO_COLOR").empty() && !traits.dumb;
  traits.utf8 = LocaleIsUtf8();
  traits.out_fd = STDOUT_FILENO;
  traits.screen_fd = traits.out_is_terminal ? STDOUT_FILENO : -1;
  // Tables and bars go to stdout, progress to stderr: mostly one terminal shows both.
  winsize size{};
  const int shown_fd = traits.out_is_terminal ? STDOUT_FILENO : STDERR_FILENO;
  if (ioctl(shown_fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    traits.width = size.ws_col;
  }
  return traits;
}

// Sets signals as we need them, whatever our parent has made of them.
void SettleSignals() {
  // With SIGCHLD ignored the exit status of a handler is discarded, and waiting for it looks like
  // exit 0, which acks.
  signal(SIGCHLD, SIG_DFL);
  // Exceeding the file size limit (ulimit -f) is then reported as an error of the write, and a
  // worker whose log has reached it goes on with its jobs. Handlers get the default back.
  signal(SIGXFSZ, SIG_IGN);
  // Where the parent has blocked these, only SIGKILL would end a verb that waits.
  delayd::MaskSignals(SIG_UNBLOCK, {SIGTERM, SIGINT, SIGHUP});
}

}  // namespace

int main(int argc, char** argv) {
  delayd::ReserveStandardFds();
  delayd::cli::InstallLastWords();
  SettleSignals();
  std::ios::sync_with_stdio(false);
  // For the widths of characters only; numbers and messages are not localized.
  setlocale(LC_CTYPE, "C.UTF-8");
  const delayd::SystemClock clock;
  delayd::cli::Console console(std::cout, std::cerr, TerminalTraits());
  const std::vector<std::string> args(argv + 1, argv + argc);
  return delayd::cli::RunDelayctl(args,
                                  {.console = console,
                                   .clock = clock,
                                   .in = std::cin,
                                   .in_is_terminal = isatty(STDIN_FILENO) != 0,
                                   .in_fd = STDIN_FILENO,
                                   .server = Environment("DELAYCTL_SERVER"),
                                   .token_file = Environment("DELAYCTL_TOKEN_FILE"),
                                   .ca_file = Environment("DELAYCTL_CA_FILE"),
                                   .zone = cctz::local_time_zone(),
                                   .unknown_zone = UnknownZone()});
}

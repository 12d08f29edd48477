#include "cli/help.h"

#include "cli/verbs/verbs.h"

namespace delayd::cli {
namespace {

constexpr std::string_view kIntroduction =
    "delayctl: talk to delayd, the durable delayed-job store\n"
    "\n"
    "  delayctl enqueue --in 30m --queue orders --key order:1001 '{\"order_id\":1001}'\n"
    "  delayctl work --queue orders --exec ./cancel-order\n"
    "\n";

constexpr std::string_view kMore =
    "\n"
    "Help on one verb: delayctl VERB --help. Options for all, and exit codes: delayctl --help.\n";

constexpr std::string_view kGlobals =
    "\n"
    "Options of all verbs:\n"
    "  -s, --server ADDRESS   unix:/path/to.sock or http://host:port; else DELAYCTL_SERVER;\n"
    "                         else unix:/run/delayd/delayd.sock\n"
    "      --token-file PATH  file with the token to show; else DELAYCTL_TOKEN_FILE\n"
    "  -o, --output FORMAT    table (default), json or jsonl\n"
    "  -q, --quiet            ids only, no words\n"
    "      --timeout DURATION give up on an answer after this long (5s)\n"
    "  -h, --help             help\n"
    "  -V, --version          version\n"
    "\n"
    "Durations: 500ms 90s 30m 1h30m 2d (1d is 24 h). Times: 2027-01-01T09:00:00Z, or +08:00.\n"
    "Colour appears on a terminal only; NO_COLOR turns it off.\n"
    "\n"
    "Exit codes: 0 done, 1 failed or only part done, 2 wrong usage or unreadable input,\n"
    "3 no such job, key or queue, 4 refused by state (leased, already fired, key conflict),\n"
    "5 daemon unreachable or not ready, 6 timed out, 7 not allowed, 130 interrupted.\n";

}  // namespace

std::string ShortHelp(const std::vector<std::unique_ptr<Verb>>& verbs) {
  constexpr size_t kNameWidth = 12;
  std::string text(kIntroduction);
  for (const auto& verb : verbs) {
    std::string name(verb->name());
    name.resize(std::max(kNameWidth, name.size() + 1), ' ');
    text += "  " + name + std::string(verb->summary()) + "\n";
  }
  return text + std::string(kMore);
}

std::string LongHelp(const std::vector<std::unique_ptr<Verb>>& verbs) {
  return ShortHelp(verbs) + std::string(kGlobals);
}

std::string VersionLine() {
  return "delayctl " + std::string(BuildVersion()) + "\n";
}

}  // namespace delayd::cli

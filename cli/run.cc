#include "cli/run.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/context.h"
#include "cli/manual.h"
#include "cli/token_client.h"
#include "cli/token_file.h"
#include "cli/verbs/verbs.h"
#include "protocol/server_address.h"

#include <arpa/inet.h>

namespace delayd::cli {
namespace {

// In the order in which the help lists them.
std::vector<std::unique_ptr<Verb>> AllVerbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  for (const auto make : {
           MakeEnqueue, MakeList,   MakeShow,       MakeCancel,  MakeReschedule, MakeTouch,
           MakeKick,    MakeRun,    MakeWait,       MakeImport,  MakeExport,     MakeWork,
           MakeLease,   MakeAck,    MakeNack,       MakeBury,    MakeExtend,     MakeQueues,
           MakePause,   MakeResume, MakeForecast,   MakeStatus,  MakeStats,      MakeTop,
           MakeClock,   MakeDrain,  MakeVerify,     MakeRecover, MakeBackup,     MakePing,
           MakeDoctor,  MakeConfig, MakeCompletion, MakeVersion,
       }) {
    verbs.push_back(make());
  }
  return verbs;
}

// The option if it was given, else the environment variable, else `otherwise`.
Setting Choose(const std::optional<std::string>& given,
               std::string_view option,
               const std::string& of_environment,
               std::string_view variable,
               std::string_view otherwise = {}) {
  if (given.has_value()) {
    return {*given, option};
  }
  return of_environment.empty() ? Setting{std::string(otherwise), "default"}
                                : Setting{of_environment, variable};
}

Target TargetOf(const Globals& globals, const Environment& environment) {
  return {.server = Choose(globals.server,
                           "--server",
                           environment.server,
                           "DELAYCTL_SERVER",
                           protocol::kDefaultServer),
          .token_file = Choose(
              globals.token_file, "--token-file", environment.token_file, "DELAYCTL_TOKEN_FILE"),
          .ca_file = Choose(globals.ca_file, "--ca-file", environment.ca_file, "DELAYCTL_CA_FILE")};
}

// Tests a numeric address, since a name may begin with 127 and lead anywhere.
bool IsOwnMachine(const std::string& host) {
  constexpr in_addr_t kLoopbackNet = 127;
  in_addr v4{};
  return host == "localhost" || host == "::1" ||
         (inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == kLoopbackNet);
}

// Whether a token would cross a network on which others can listen.
bool IsOverheard(const std::string& server) {
  const StatusOr<protocol::ServerAddress> address = protocol::ParseServerAddress(server);
  return address.ok() && address->path.empty() && !address->tls && !IsOwnMachine(address->host);
}

// The token comes from a file, never from the command line, where everybody could read it. `token`
// keeps it for the next connection: the file may be a pipe, which gives it only once.
StatusOr<std::unique_ptr<protocol::Client>> Connect(const Target& target,
                                                    const Environment& environment,
                                                    std::optional<std::string>* token) {
  const std::string& server = target.server.value;
  StatusOr<std::unique_ptr<protocol::Client>> client =
      environment.connect(server, target.ca_file.value);
  if (!client.ok() || target.token_file.value.empty()) {
    return client;
  }
  if (IsOverheard(server)) {
    return InvalidArgument("a token is not sent to " + server +
                           " in clear; use https://, or a loopback address behind a tunnel");
  }
  if (!token->has_value()) {
    DELAYD_ASSIGN_OR_RETURN(*token, ReadTokenFile(target.token_file.value));
  }
  return ShowTokenOf(target.token_file.value, **token, std::move(client).value());
}

// Short enough that the user does not notice the shell waiting.
constexpr Millis kCompletionTimeout{200};

// Hidden commands for the completion scripts and the build of the manual.
int RunHidden(const std::vector<std::string>& args, const Environment& environment) {
  const std::vector<std::unique_ptr<Verb>> verbs = AllVerbs();
  std::ostream& out = environment.console.out();
  const std::vector<std::string> words(args.begin() + 1, args.end());
  if (args.front() == "__manual") {
    const std::optional<std::string> part =
        ManualPart(words.empty() ? "" : std::string_view(words.front()), verbs);
    out << part.value_or("");
    return part.has_value() && out.flush().good() ? kExitOk : kExitUsage;
  }
  const auto queues = [&](const Globals& globals) {
    std::vector<std::string> names;
    const Target target = TargetOf(globals, environment);
    const std::string& token_file = target.token_file.value;
    std::error_code ignored;
    if (!token_file.empty() && !std::filesystem::is_regular_file(token_file, ignored)) {
      return names;  // a pipe gives its token only once: leave it to the command
    }
    std::optional<std::string> token;
    auto client = Connect(target, environment, &token);
    if (client.ok()) {
      const auto counts = Api(std::move(client).value(), kCompletionTimeout).Queues();
      for (const protocol::QueueCounts& queue :
           counts.ok() ? *counts : std::vector<protocol::QueueCounts>()) {
        names.push_back(queue.name);
      }
    }
    return names;
  };
  out << CompletionText(Complete(words, verbs, queues)) << std::flush;
  return kExitOk;
}

int CallVerb(const Invocation& invocation, const Environment& environment) {
  Console& console = environment.console;
  const Globals& globals = invocation.globals;
  const Target target = TargetOf(globals, environment);
  console.set_quiet(globals.quiet);
  console.set_json(globals.output != OutputFormat::kTable);
  std::optional<std::string> token;
  Context context{.globals = globals,
                  .console = console,
                  .clock = environment.clock,
                  .in = environment.in,
                  .in_is_terminal = environment.in_is_terminal,
                  .in_fd = environment.in_fd,
                  .connect = [&] { return Connect(target, environment, &token); },
                  .sleep = environment.sleep,
                  .zone = globals.utc ? cctz::utc_time_zone() : environment.zone,
                  .target = target};
  const StatusOr<ExitCode> done = invocation.verb->Run(&context);
  if (!done.ok()) {
    console.Error(done.status());
  }
  return done.ok() ? *done : ExitCodeOf(done.status());
}

}  // namespace

int RunDelayctl(const std::vector<std::string>& args, const Environment& environment) {
  if (!args.empty() && (args.front() == "__complete" || args.front() == "__manual")) {
    return RunHidden(args, environment);
  }
  Console& console = environment.console;
  const std::vector<std::unique_ptr<Verb>> verbs = AllVerbs();
  const StatusOr<Invocation> invocation =
      ParseCommandLine(args,
                       verbs,
                       {.now = environment.clock.Sample().wall,
                        .zone = environment.zone,
                        .unknown_zone = environment.unknown_zone});
  if (!invocation.ok()) {
    console.set_json(AsksForJson(args));
    console.Error(invocation.status());
    return kExitUsage;
  }
  int code = kExitOk;
  if (invocation->verb == nullptr) {
    console.out() << invocation->help;
  } else {
    code = CallVerb(*invocation, environment);
  }
  const bool told = console.out_failure_told();
  const Status written = console.CheckOut(true);
  if (!written.ok() && !told) {
    // A job may have been stored although its id was not printed.
    console.Error(
        code == kExitOk && invocation->verb != nullptr && !invocation->verb->only_reads()
            ? Internal(written.message() + " All else was done: look before you do it again")
            : written);
  }
  return written.ok() ? code : kExitFailed;
}

}  // namespace delayd::cli

#include "cli/run.h"

#include "cli/command_line.h"
#include "cli/context.h"
#include "cli/verbs/verbs.h"
#include "protocol/server_address.h"

namespace delayd::cli {
namespace {

// In the order of the help.
std::vector<std::unique_ptr<Verb>> AllVerbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  for (const auto make :
       {MakeEnqueue, MakeList,   MakeShow,  MakeCancel, MakeReschedule, MakeTouch, MakeKick,
        MakeImport,  MakeExport, MakeWork,  MakeLease,  MakeAck,        MakeNack,  MakeBury,
        MakeExtend,  MakeQueues, MakePause, MakeResume, MakeStats,      MakePing,  MakeVersion}) {
    verbs.push_back(make());
  }
  return verbs;
}

std::string ChooseServer(const Globals& globals, const Environment& environment) {
  if (globals.server.has_value()) {
    return *globals.server;
  }
  return environment.server.empty() ? std::string(protocol::kDefaultServer) : environment.server;
}

}  // namespace

int RunDelayctl(const std::vector<std::string>& args, const Environment& environment) {
  Console& console = environment.console;
  const std::vector<std::unique_ptr<Verb>> verbs = AllVerbs();
  StatusOr<Invocation> invocation = ParseCommandLine(args, verbs);
  if (!invocation.ok()) {
    console.Error(invocation.status());
    return kExitUsage;
  }
  int code = kExitOk;
  if (invocation->verb == nullptr) {
    console.out() << invocation->help;
  } else {
    const Globals& globals = invocation->globals;
    console.set_quiet(globals.quiet);
    console.set_json_errors(globals.output != OutputFormat::kTable);
    Context context{.globals = globals,
                    .console = console,
                    .clock = environment.clock,
                    .in = environment.in,
                    .in_is_terminal = environment.in_is_terminal,
                    .connect = [&environment, server = ChooseServer(globals, environment)] {
                      return environment.connect(server);
                    }};
    code = invocation->verb->Run(&context);
  }
  console.out().flush();
  if (!console.out().good()) {
    console.Error(Internal("cannot write to stdout; is the disk full?"));
    return kExitFailed;
  }
  return code;
}

}  // namespace delayd::cli

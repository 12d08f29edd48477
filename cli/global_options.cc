#include "cli/global_options.h"

#include "protocol/nearest.h"

namespace delayd::cli {

void DeclareGlobals(Options* options, GlobalValues* values) {
  Globals* globals = &values->globals;
  options->Text("-s,--server",
                "ADDRESS",
                &globals->server,
                "unix:/path/to.sock or http[s]://host:port [DELAYCTL_SERVER]");
  options->Text("--token-file",
                "FILE",
                &globals->token_file,
                "holds the token to show [DELAYCTL_TOKEN_FILE]");
  options->Text("--ca-file",
                "FILE",
                &globals->ca_file,
                "CAs to trust for the server, in place of the system's [DELAYCTL_CA_FILE]");
  options->Text("-o,--output",
                "FORMAT",
                &values->output,
                "table, wide, json or jsonl",
                {"table", "wide", "json", "jsonl"});
  options->Flag("-q,--quiet", &globals->quiet, "ids only, no messages");
  options->Flag("--utc", &globals->utc, "read and show times in UTC, not in the local zone");
  options->Duration("--timeout",
                    &globals->timeout,
                    "give up on an answer after this long (5s; import 30s; verify, backup 1h)");
}

std::optional<OutputFormat> ParseJsonFormat(std::string_view output) {
  if (output == "json") {
    return OutputFormat::kJson;
  }
  return output == "jsonl" || output == "ndjson" ? std::optional(OutputFormat::kJsonl)
                                                 : std::nullopt;
}

StatusOr<Globals> ApplyGlobals(const GlobalValues& values) {
  Globals globals = values.globals;
  if (globals.timeout == Millis(0)) {
    // Many programs take 0 for "never"; here a change would be sent and its answer not read.
    return UsageError("--timeout: 0 would give up before any answer; give a longer time");
  }
  const std::string output = values.output.value_or("table");
  if (const std::optional<OutputFormat> json = ParseJsonFormat(output)) {
    globals.output = *json;
  } else if (output == "wide") {
    globals.wide = true;
  } else if (output != "table") {
    return UsageError("--output: " + protocol::Quoted(output) +
                      " is unknown; use table, wide, json or jsonl");
  }
  return globals;
}

}  // namespace delayd::cli

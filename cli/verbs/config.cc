#include <cstdlib>

#include "base/utf8.h"
#include "cli/store_tool.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "protocol/duration.h"
#include "protocol/json_writer.h"
#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

class ConfigVerb final : public Verb {
 public:
  std::string_view name() const override { return "config"; }

  std::string_view summary() const override {
    return "Show delayctl's settings, or check the daemon's configuration";
  }

  std::string_view details() const override {
    return "Without arguments: delayctl's own settings, and where each comes from. `check` reads\n"
           "a configuration of the daemon as the daemon would, and names every mistake by file,\n"
           "line and column; exit code 2 if there is one. With -o json: file, valid and remarks.\n"
           "\n"
           "Examples:\n"
           "  delayctl config\n"
           "  delayctl config check /etc/delayd/delayd.yaml";
  }

  void Declare(Options* options) override {
    options->Positional("[ACTION]", &action_, "show (the default) or check", {"show", "check"});
    options->Positional("[FILE]", &file_, "the file to check (/etc/delayd/delayd.yaml)");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    const std::string action = action_.value_or("show");
    if (action == "check") {
      return Check(context);
    }
    if (action != "show" || file_.has_value()) {
      return UsageError(action == "show" ? "show takes no file; did you mean: delayctl config check"
                                         : protocol::Quoted(action) +
                                               " is unknown; use show, or check with a file");
    }
    Show(context);
    return kExitOk;
  }

 private:
  struct Row {
    std::string name;
    Setting setting;
  };

  static void Show(Context* context) {
    const Globals& globals = context->globals;
    const char* const no_color = std::getenv("NO_COLOR");

    const Row rows[] = {
        {"server", context->target.server},
        {"token file", context->target.token_file},
        {"ca file", context->target.ca_file},
        {"timeout",
         {protocol::FormatDuration(globals.timeout.value_or(kTimeoutDefault)),
          globals.timeout.has_value() ? "--timeout" : "default"}},
        {"zone",
         {context->zone.name(),
          globals.utc ? "--utc" : (std::getenv("TZ") != nullptr ? "TZ" : "/etc/localtime")}},
        {"colour",
         {context->console.traits().color ? "yes" : "no",
          no_color != nullptr && *no_color != '\0' ? "NO_COLOR" : "terminal"}},
    };

    const auto to_json = [](const Row& row) {
      protocol::JsonObjectWriter writer;
      writer.String("setting", row.name);
      writer.String("value", row.setting.value);
      writer.String("from", row.setting.origin);
      return writer.Take();
    };
    std::ostream& out = context->console.out();
    if (globals.output == OutputFormat::kJson) {
      out << protocol::JsonPage("settings", rows, to_json, "") << '\n';
      return;
    }
    Table table({"SETTING", "VALUE", "FROM"});
    for (const Row& row : rows) {
      if (globals.output == OutputFormat::kTable) {
        table.Add({row.name, row.setting.value, std::string(row.setting.origin)});
      } else {
        out << to_json(row) << '\n';
      }
    }
    if (globals.output == OutputFormat::kTable) {
      table.Flush(&context->console);
    }
  }

  StatusOr<ExitCode> Check(Context* context) const {
    const std::string file = file_.value_or("/etc/delayd/delayd.yaml");
    DELAYD_ASSIGN_OR_RETURN(const ConfigVerdict verdict, CheckDaemonConfig(file));
    const Globals& globals = context->globals;
    if (globals.output != OutputFormat::kTable) {
      protocol::JsonObjectWriter writer;
      writer.String("file", file);
      writer.Bool("valid", verdict.valid);
      writer.Raw("remarks", protocol::JsonArray(verdict.remarks, protocol::JsonString));
      context->console.out() << writer.Take() << '\n';
    } else {
      for (const std::string& remark : verdict.remarks) {
        context->console.Draw(EscapeControls(remark) + "\n");
      }
      if (verdict.valid && !globals.quiet) {
        context->console.Words(file + ": the configuration is valid");
      }
    }
    return verdict.valid ? kExitOk : kExitUsage;
  }

  std::optional<std::string> action_;
  std::optional<std::string> file_;
};

}  // namespace

std::unique_ptr<Verb> MakeConfig() {
  return std::make_unique<ConfigVerb>();
}

}  // namespace delayd::cli

#include <algorithm>

#include "cli/metrics_page.h"
#include "cli/stat.h"
#include "cli/verbs/doctor_checks.h"
#include "cli/verbs/queue_troubles.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"
#include "protocol/server_address.h"

namespace delayd::cli {
namespace {

std::string_view Word(Result result) {
  return result == Result::kOk ? "ok" : result == Result::kWarn ? "warn" : "FAIL";
}

class DoctorVerb final : public Verb {
 public:
  std::string_view name() const override { return "doctor"; }

  std::string_view summary() const override { return "Check for problems, and say what to do"; }

  std::string_view details() const override {
    return "Checks the socket and your rights, the daemon's answer, versions, its jobs, queues\n"
           "whose due jobs nobody takes or whose workers fail, its connections, the disk and the\n"
           "clocks. Changes nothing. Exit code 1 when a check fails; warnings do not count.\n"
           "\n"
           "Examples:\n"
           "  delayctl doctor\n"
           "  delayctl doctor --data-dir /srv/delayd -o jsonl";
  }

  void Declare(Options* options) override {
    options->Text(
        "--data-dir",
        "DIR",
        &data_dir_,
        "look at the disk of this directory (the daemon tells; /var/lib/delayd while it is down)");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    DELAYD_ASSIGN_OR_RETURN(const protocol::ServerAddress address,
                            protocol::ParseServerAddress(context->target.server.value));
    const bool local = !address.path.empty();
    if (local) {
      findings_.push_back(CheckSocket(address.path));
    }
    CheckDaemon(context);
    CheckItsDisk(local);
    const WallTime now = context->clock.Sample().wall;
    findings_.push_back(CheckClock(now, context->TimeText(now)));
    Add(CompareClocks(context->daemon_clock->ahead()));
    Print(context);
    for (const Finding& finding : findings_) {
      if (finding.result == Result::kFail) {
        return kExitFailed;
      }
    }
    return kExitOk;
  }

 private:
  void Fail(std::string check, const Status& status) {
    findings_.push_back({std::move(check), Result::kFail, status.message()});
  }

  void CheckDaemon(Context* context) {
    const StatusOr<std::unique_ptr<Api>> api = context->OpenApi();
    if (!api.ok()) {
      return Fail("daemon", api.status());
    }
    const StatusOr<protocol::Health> health = (*api)->Readiness();
    if (!health.ok()) {
      is_down_ = health.status().reason() == "unreachable";
      return Fail("daemon", health.status());
    }
    is_read_only_ = std::ranges::any_of(
        health->reasons, [](const auto& reason) { return reason.code == "disk_read_only"; });
    findings_.push_back(
        {"daemon",
         !health->well()           ? Result::kFail
         : health->reasons.empty() ? Result::kOk
                                   : Result::kWarn,
         "answers: " + health->status + (health->reasons.empty() ? "" : "; " + health->Why())});
    Finding version{.check = "version", .what = "delayd and delayctl " + health->version};
    if (health->version != BuildVersion()) {
      version.result = Result::kWarn;
      version.what =
          "delayd is " + health->version + ", delayctl is " + std::string(BuildVersion());
      version.cure = "upgrade the older one; restart the daemon if it still runs the old program";
    }
    findings_.push_back(std::move(version));
    metrics_ = (*api)->Metrics();
    CheckJobs(api->get(), *context);
    if (metrics_.ok()) {
      Add(CheckConnections(*metrics_));
    }
  }

  void Add(std::optional<Finding> finding) {
    if (finding) {
      findings_.push_back(*std::move(finding));
    }
  }

  std::optional<uint64_t> Bytes(std::string_view name) const {
    const std::optional<double> bytes =
        metrics_.ok() ? Figure(*metrics_, name) : std::optional<double>();
    return bytes ? std::optional(static_cast<uint64_t>(*bytes)) : std::nullopt;
  }

  // For a daemon that is down, the default data directory is a guess, but the best there is.
  void CheckItsDisk(bool local) {
    const std::optional<uint64_t> reserve = Bytes("delayd_disk_reserve_bytes");
    const std::optional<uint64_t> free = Bytes("delayd_disk_free_bytes");
    if (is_read_only_) {
      findings_.push_back(CheckReadOnlyDisk(free));
    }
    if (data_dir_ || (local && is_down_)) {
      findings_.push_back(CheckDisk(data_dir_.value_or("/var/lib/delayd"), reserve));
      if (!data_dir_) {
        findings_.back().what += " (the usual data_dir: one that is down does not tell its own)";
      }
    } else if (free && !is_read_only_) {
      findings_.push_back(CheckDaemonsDisk(
          *free, Bytes("delayd_disk_free_inodes"), reserve, Bytes("delayd_store_wal_bytes")));
    }
    if (Bytes("delayd_store_tables_waiting").value_or(0) > 0) {
      findings_.push_back({"store",
                           Result::kWarn,
                           "the disk has no room to merge tables: the space of jobs that are gone "
                           "does not come back",
                           "make room, or raise the quota: then a merge is tried again within "
                           "a minute"});
    }
  }

  // Answers about jobs wait for the commit that they depend on; the daemon's metrics do not.
  void FailJobs(Api* api, const Status& status) {
    Finding finding{"jobs", Result::kFail, status.message()};
    const StatusOr<std::string> page = api->Metrics();
    const std::optional<double> running =
        page.ok() ? Figure(*page, "delayd_commit_running_seconds") : std::nullopt;
    if (running && *running >= 1) {
      finding.what += "; the disk hangs: a commit has taken " +
                      std::to_string(static_cast<uint64_t>(*running)) + "s so far";
      finding.cure = "look at the kernel's log (dmesg) and the disk's health";
    }
    findings_.push_back(std::move(finding));
  }

  void CheckJobs(Api* api, const Context& context) {
    const StatusOr<std::vector<protocol::Stat>> stats = api->Stats();
    if (!stats.ok()) {
      return FailJobs(api, stats.status());
    }
    const auto count = [&](std::string_view name) { return StatNumber(*stats, name).value_or(0); };
    Finding finding{.check = "jobs",
                    .what = std::to_string(count("scheduled")) + " scheduled, " +
                            std::to_string(count("ready")) + " ready, " +
                            std::to_string(count("leased")) + " leased, " +
                            std::to_string(count("dead")) + " dead"};
    if (count("damaged") != 0) {
      finding.result = Result::kFail;
      finding.what += ", " + std::to_string(count("damaged")) + " DAMAGED";
      finding.cure =
          "journalctl -u delayd -p err names them; check the disk, keep a copy of data_dir";
    } else if (count("dead") != 0) {
      finding.result = Result::kWarn;
      finding.cure = "look at them: delayctl list --state dead -o wide";
    }
    findings_.push_back(std::move(finding));
    if (count("ready") != 0) {
      TellQueues(FindQueueTroubles(api, count("waiting"), context));
    }
    if (count("nacked") + count("lease_expired") != 0 && metrics_.ok()) {
      TellQueues(FindFailingQueues(api, *metrics_));
    }
  }

  void TellQueues(const StatusOr<QueueTroubles>& troubles) {
    if (!troubles.ok()) {
      return Fail("queues", troubles.status());
    }
    for (const QueueTroubles::Trouble& trouble : troubles->worst) {
      findings_.push_back({"queues", Result::kWarn, trouble.what, trouble.cure});
    }
    // If no queue that was asked about has waited, the others hardly have.
    const uint64_t unknown = troubles->worst.empty() ? 0 : troubles->unknown;
    if (troubles->others + unknown != 0) {
      findings_.push_back({"queues",
                           Result::kWarn,
                           (unknown != 0 ? "up to " : "") +
                               std::to_string(troubles->others + unknown) + " more like these",
                           "see them: delayctl queues"});
    }
  }

  static std::string ToJson(const Finding& finding) {
    protocol::JsonObjectWriter writer;
    writer.String("check", finding.check);
    writer.String("result", finding.result == Result::kFail ? "fail" : Word(finding.result));
    writer.String("finding", finding.what);
    writer.String("cure", finding.cure);
    return writer.Take();
  }

  void Print(Context* context) const {
    std::ostream& out = context->console.out();
    if (context->globals.output == OutputFormat::kJson) {
      out << protocol::JsonPage("checks", findings_, ToJson, "") << '\n';
      return;
    }
    for (const Finding& finding : findings_) {
      if (context->globals.output == OutputFormat::kJsonl) {
        out << ToJson(finding) << '\n';
        continue;
      }
      if (context->globals.quiet && finding.result == Result::kOk) {
        continue;
      }
      std::string head(Word(finding.result));
      head.resize(6, ' ');
      std::string check = finding.check;
      check.resize(9, ' ');
      context->console.Words(head + check + finding.what);
      if (!finding.cure.empty()) {
        context->console.Words("               do: " + finding.cure);
      }
    }
  }

  std::optional<std::string> data_dir_;
  bool is_down_ = false;
  bool is_read_only_ = false;  // the file system of the daemon's data
  StatusOr<std::string> metrics_ = NotFound("not asked for");
  std::vector<Finding> findings_;
};

}  // namespace

std::unique_ptr<Verb> MakeDoctor() {
  return std::make_unique<DoctorVerb>();
}

}  // namespace delayd::cli

#include <errno.h>
#include <grp.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "base/errno_text.h"
#include "base/utf8.h"
#include "cli/human_time.h"
#include "cli/metrics_page.h"
#include "cli/shell_word.h"
#include "cli/stat.h"
#include "cli/table.h"
#include "cli/verbs/queue_troubles.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"
#include "protocol/server_address.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

namespace delayd::cli {
namespace {

enum class Verdict : uint8_t { kOk, kWarn, kFail };

struct Finding {
  std::string check;
  Verdict verdict = Verdict::kOk;
  std::string what;
  std::string cure = {};
};

std::string_view Word(Verdict verdict) {
  return verdict == Verdict::kOk ? "ok" : verdict == Verdict::kWarn ? "warn" : "FAIL";
}

std::string GroupName(gid_t gid) {
  group entry{};
  group* found = nullptr;
  char buffer[4096];
  if (getgrgid_r(gid, &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr) {
    return entry.gr_name;
  }
  return std::to_string(gid);
}

std::string Octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

Finding CheckSocket(const std::string& path) {
  Finding finding{.check = "socket"};

  struct stat info {};

  if (stat(path.c_str(), &info) != 0) {
    const bool denied = errno == EACCES;
    finding.verdict = Verdict::kFail;
    finding.what = path + ": " + ErrnoText(errno);
    finding.cure = denied
                       ? "its directory is closed to you: sudo usermod -aG delayd $USER, then log "
                         "in again; or use sudo"
                       : "start the daemon: systemctl start delayd (restart where it runs and its "
                         "socket was removed); why it is down: journalctl -u delayd -n 20. Another "
                         "socket: --server or DELAYCTL_SERVER";
    return finding;
  }
  if (!S_ISSOCK(info.st_mode)) {
    finding.verdict = Verdict::kFail;
    finding.what = path + " is not a socket";
    finding.cure = "check --server, DELAYCTL_SERVER and api.socket";
    return finding;
  }
  const std::string group = GroupName(info.st_gid);
  finding.what = path + ", group " + group + ", mode " + Octal(info.st_mode);
  if (access(path.c_str(), R_OK | W_OK) != 0) {
    finding.verdict = Verdict::kFail;
    finding.what += ": you may not use it";
    finding.cure = info.st_gid == 0
                       ? "use sudo; or let the daemon run as a user of its own"
                       : "sudo usermod -aG " + group + " $USER, then log in again; or use sudo";
  } else if ((info.st_mode & S_IWOTH) != 0) {
    finding.verdict = Verdict::kWarn;
    finding.what += ": every user of this machine may use it";
    finding.cure = "chmod 0660 " + ShellWord(path);
  }
  return finding;
}

constexpr uint64_t kMiB = uint64_t{1} << 20;
// storage.reserve of a daemon that does not tell it.
constexpr uint64_t kUsualReserve = 256 * kMiB;
// What a start needs, whatever the reserve.
constexpr uint64_t kStartBytes = kMiB;

constexpr std::string_view kMakeRoom =
    "make room now: a commit that cannot be written ends the daemon";
constexpr std::string_view kTooManyOpen = "who keeps so many open? else raise limits.connections";

// `reserve`: below it the daemon takes no new jobs; none: it does not tell.
void JudgeRoom(uint64_t free,
               std::optional<uint64_t> whole,
               std::optional<uint64_t> reserve,
               Finding* finding) {
  if (free < std::max(reserve.value_or(kUsualReserve), kStartBytes)) {
    finding->verdict = Verdict::kFail;
    finding->what +=
        free < reserve.value_or(0) ? ", less than storage.reserve: no new jobs are taken" : "";
    finding->cure = kMakeRoom;
  } else if (free < std::max(2048 * kMiB, 2 * reserve.value_or(0)) ||
             free * 20 < whole.value_or(0)) {
    finding->verdict = Verdict::kWarn;
    finding->cure = "make room, or move data_dir to a larger disk";
  }
}

// Each flush makes some files. `files`: none: as many as there is space for.
void JudgeInodes(std::optional<uint64_t> files, Finding* finding) {
  if (files && *files < 1000) {
    finding->verdict = Verdict::kFail;
    finding->what += ", and hardly an inode";
    finding->cure = kMakeRoom;
  }
}

// As the daemon sees it, wherever its data lies.
Finding CheckDaemonsDisk(uint64_t free,
                         std::optional<uint64_t> files,
                         std::optional<uint64_t> reserve) {
  Finding finding{.check = "disk",
                  .what = std::to_string(free / kMiB) + " MiB free where the daemon's data lies"};
  JudgeRoom(free, std::nullopt, reserve, &finding);
  JudgeInodes(files, &finding);
  return finding;
}

Finding CheckDisk(const std::string& directory, std::optional<uint64_t> reserve) {
  Finding finding{.check = "disk"};

  struct statvfs info {};

  if (statvfs(directory.c_str(), &info) != 0) {
    const int error = errno;
    finding.verdict = Verdict::kWarn;
    finding.what = directory + ": " + ErrnoText(error);
    finding.cure = error == EACCES ? "run it as the daemon's user, or with sudo"
                                   : "name the daemon's data_dir with --data-dir";
    return finding;
  }
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  const uint64_t whole = std::max<uint64_t>(uint64_t{info.f_blocks} * info.f_frsize, 1);
  finding.what = directory + ": " + std::to_string(free / kMiB) + " MiB free of " +
                 std::to_string(whole / kMiB) + " MiB";
  if ((info.f_flag & ST_RDONLY) != 0) {
    finding.verdict = Verdict::kFail;
    finding.what += ", mounted read-only";
    finding.cure = "why: dmesg; then mount it writable: the daemon cannot start here";
    return finding;
  }
  JudgeRoom(free, whole, reserve, &finding);
  JudgeInodes(info.f_files != 0 ? std::optional<uint64_t>(info.f_favail) : std::nullopt, &finding);
  return finding;
}

// `page`: the daemon's metrics. None: they do not tell.
std::optional<Finding> CheckConnections(std::string_view page) {
  const std::optional<double> open = Figure(page, "delayd_connections");
  const std::optional<double> max = Figure(page, "delayd_connections_max");
  if (!open || !max) {
    return std::nullopt;
  }
  const auto number = [](double figure) { return std::to_string(static_cast<uint64_t>(figure)); };
  Finding finding{.check = "clients",
                  .what = number(*open) + " of " + number(*max) + " connections are in use"};
  const auto warn = [&finding](const std::string& what, std::string_view cure) {
    finding.verdict = Verdict::kWarn;
    finding.what += what;
    finding.cure = cure;
  };
  if (const double refused = Figure(page, "delayd_connections_refused_total").value_or(0);
      refused > 0) {
    warn(", " + number(refused) + " were refused since it started", kTooManyOpen);
  }
  // Over TCP from here on.
  if (*open * 8 >= *max * 7) {
    warn(", more are refused, over TCP at least", kTooManyOpen);
  }
  // What the daemon wants to have for its store, beside the connections.
  constexpr double kOtherFiles = 1024;
  const std::optional<double> files = Figure(page, "process_max_fds");
  if (files && *files < *max + kOtherFiles) {
    warn("; there may be no more, since it may open " + number(*files) + " files only",
         "raise the limit of open files: LimitNOFILE= of its unit, or ulimit -n, and restart it");
  }
  return finding;
}

// Jobs are due by the daemon's clock.
std::optional<Finding> CompareClocks(Millis ahead) {
  if (ahead == Millis(0)) {
    return std::nullopt;
  }
  return Finding{.check = "clock",
                 .verdict = Verdict::kWarn,
                 .what = "the daemon's clock is " + RoughDuration(std::chrono::abs(ahead)) +
                         (ahead > Millis(0) ? " ahead of" : " behind") + " the one here",
                 .cure =
                     "put right the one that is wrong (timedatectl); whether the daemon "
                     "believes its own: delayctl clock"};
}

Finding CheckClock(WallTime now, const std::string& shown) {
  // A machine whose clock was never set starts at its firmware's date.
  constexpr int64_t kYear2024 = 1'704'067'200'000;
  Finding finding{.check = "clock", .what = shown};
  timex state{};
  const int result = adjtimex(&state);
  if (now < WallFromMillis(kYear2024)) {
    finding.verdict = Verdict::kFail;
    finding.what += ": the clock is not set; jobs with --at would wait for years";
    finding.cure = "set it: timedatectl set-ntp true";
  } else if (result == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    finding.verdict = Verdict::kWarn;
    finding.what += ": nothing keeps the clock in step (jobs with --in do not mind)";
    finding.cure = "install systemd-timesyncd or chrony, then: timedatectl set-ntp true";
  }
  return finding;
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
      if (finding.verdict == Verdict::kFail) {
        return kExitFailed;
      }
    }
    return kExitOk;
  }

 private:
  void Fail(std::string check, const Status& status) {
    findings_.push_back({std::move(check), Verdict::kFail, status.message()});
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
    findings_.push_back(
        {"daemon",
         !health->well()           ? Verdict::kFail
         : health->reasons.empty() ? Verdict::kOk
                                   : Verdict::kWarn,
         "answers: " + health->status + (health->reasons.empty() ? "" : "; " + health->Why())});
    Finding version{.check = "version", .what = "delayd and delayctl " + health->version};
    if (health->version != BuildVersion()) {
      version.verdict = Verdict::kWarn;
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

  // Where a daemon that is down would have its data by default is a guess, but the best.
  void CheckItsDisk(bool local) {
    const std::optional<uint64_t> reserve = Bytes("delayd_disk_reserve_bytes");
    const std::optional<uint64_t> free = Bytes("delayd_disk_free_bytes");
    if (data_dir_ || (local && is_down_)) {
      findings_.push_back(CheckDisk(data_dir_.value_or("/var/lib/delayd"), reserve));
      if (!data_dir_) {
        findings_.back().what += " (the usual data_dir: one that is down does not tell its own)";
      }
    } else if (free) {
      findings_.push_back(CheckDaemonsDisk(*free, Bytes("delayd_disk_free_inodes"), reserve));
    }
    if (Bytes("delayd_store_tables_waiting").value_or(0) > 0) {
      findings_.push_back({"store",
                           Verdict::kWarn,
                           "the disk has no room to merge tables: the space of jobs that are gone "
                           "does not come back",
                           "make room: then a merge is tried again within ten seconds"});
    }
  }

  // An answer waits for the commit that it rests on; what the daemon tells of itself does not.
  void FailJobs(Api* api, const Status& status) {
    Finding finding{"jobs", Verdict::kFail, status.message()};
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
      finding.verdict = Verdict::kFail;
      finding.what += ", " + std::to_string(count("damaged")) + " DAMAGED";
      finding.cure =
          "journalctl -u delayd -p err names them; check the disk, keep a copy of data_dir";
    } else if (count("dead") != 0) {
      finding.verdict = Verdict::kWarn;
      finding.cure = "look at them: delayctl list --state dead -o wide";
    }
    findings_.push_back(std::move(finding));
    if (count("ready") != 0) {
      CheckQueues(api, count("waiting"), context);
    }
  }

  void CheckQueues(Api* api, uint64_t waiting, const Context& context) {
    const StatusOr<QueueTroubles> troubles = FindQueueTroubles(api, waiting, context);
    if (!troubles.ok()) {
      return Fail("queues", troubles.status());
    }
    for (const QueueTroubles::Trouble& trouble : troubles->worst) {
      findings_.push_back({"queues", Verdict::kWarn, trouble.what, trouble.cure});
    }
    // Where those that were asked about have not waited, the others hardly have.
    const uint64_t unknown = troubles->worst.empty() ? 0 : troubles->unknown;
    if (troubles->others + unknown != 0) {
      findings_.push_back({"queues",
                           Verdict::kWarn,
                           (unknown != 0 ? "up to " : "") +
                               std::to_string(troubles->others + unknown) + " more like these",
                           "see them: delayctl queues"});
    }
  }

  static std::string ToJson(const Finding& finding) {
    protocol::JsonObjectWriter writer;
    writer.String("check", finding.check);
    writer.String("result", finding.verdict == Verdict::kFail ? "fail" : Word(finding.verdict));
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
      if (context->globals.quiet && finding.verdict == Verdict::kOk) {
        continue;
      }
      std::string head(Word(finding.verdict));
      head.resize(6, ' ');
      std::string check = finding.check;
      check.resize(9, ' ');
      out << head << check << EscapeControls(finding.what) << '\n';
      if (!finding.cure.empty()) {
        out << "               do: " << EscapeControls(finding.cure) << '\n';
      }
    }
  }

  std::optional<std::string> data_dir_;
  bool is_down_ = false;
  StatusOr<std::string> metrics_ = NotFound("not asked for");
  std::vector<Finding> findings_;
};

}  // namespace

std::unique_ptr<Verb> MakeDoctor() {
  return std::make_unique<DoctorVerb>();
}

}  // namespace delayd::cli

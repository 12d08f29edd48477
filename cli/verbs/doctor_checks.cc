#include "cli/verbs/doctor_checks.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/errno_text.h"
#include "cli/human_time.h"
#include "cli/metrics_page.h"
#include "cli/shell_word.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

namespace delayd::cli {
namespace {

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

constexpr uint64_t kMiB = uint64_t{1} << 20;
// The storage.reserve to assume when the daemon does not tell it.
constexpr uint64_t kUsualReserve = 256 * kMiB;
// Free space that a start needs, whatever the reserve.
constexpr uint64_t kStartBytes = kMiB;

constexpr std::string_view kMakeRoom =
    "make room now: a commit that cannot be written ends the daemon";
constexpr std::string_view kTooManyOpen = "who keeps so many open? else raise limits.connections";

// `reserve`: free space below which the daemon takes no new jobs; none when it does not tell.
void JudgeRoom(uint64_t free,
               std::optional<uint64_t> whole,
               std::optional<uint64_t> reserve,
               Finding* finding) {
  if (free < std::max(reserve.value_or(kUsualReserve), kStartBytes)) {
    finding->result = Result::kFail;
    finding->what +=
        free < reserve.value_or(0) ? ", less than storage.reserve: no new jobs are taken" : "";
    finding->cure = kMakeRoom;
  } else if (free < std::max(2048 * kMiB, 2 * reserve.value_or(0)) ||
             free * 20 < whole.value_or(0)) {
    finding->result = Result::kWarn;
    finding->cure = "make room, or move data_dir to a larger disk";
  }
}

// Each flush creates some files. `files`: how many more the disk can hold; none: as many as there
// is space for.
void JudgeInodes(std::optional<uint64_t> files, Finding* finding) {
  if (files && *files < 1000) {
    finding->result = Result::kFail;
    finding->what += ", and hardly an inode";
    finding->cure = kMakeRoom;
  }
}

// `log_bytes`: how much of the logs a start would write into tables, besides some other files.
void JudgeRestart(uint64_t free, std::optional<uint64_t> log_bytes, Finding* finding) {
  const uint64_t needed = kStartBytes + log_bytes.value_or(0);
  if (log_bytes && free < needed) {
    finding->result = Result::kFail;
    finding->cure = std::string(kMakeRoom) + "; and do not restart it: a start may write " +
                    std::to_string((needed + kMiB - 1) / kMiB) + " MiB, " +
                    std::to_string(free / kMiB) + " are left";
  }
}

}  // namespace

Finding CheckSocket(const std::string& path) {
  Finding finding{.check = "socket"};

  struct stat info {};

  if (stat(path.c_str(), &info) != 0) {
    const bool denied = errno == EACCES;
    finding.result = Result::kFail;
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
    finding.result = Result::kFail;
    finding.what = path + " is not a socket";
    finding.cure = "check --server, DELAYCTL_SERVER and api.socket";
    return finding;
  }
  const std::string group = GroupName(info.st_gid);
  finding.what = path + ", group " + group + ", mode " + Octal(info.st_mode);
  if (access(path.c_str(), R_OK | W_OK) != 0) {
    finding.result = Result::kFail;
    finding.what += ": you may not use it";
    finding.cure = info.st_gid == 0
                       ? "use sudo; or let the daemon run as a user of its own"
                       : "sudo usermod -aG " + group + " $USER, then log in again; or use sudo";
  } else if ((info.st_mode & S_IWOTH) != 0) {
    finding.result = Result::kWarn;
    finding.what += ": every user of this machine may use it";
    finding.cure = "chmod 0660 " + ShellWord(path);
  }
  return finding;
}

Finding CheckReadOnlyDisk(std::optional<uint64_t> free) {
  return {.check = "disk",
          .result = Result::kFail,
          .what = (free ? std::to_string(*free / kMiB) + " MiB free, and the" : "the") +
                  std::string(" disk of the daemon's data takes no writes"),
          .cure = "why: dmesg; then mount it writable: the next change of any job ends the daemon"};
}

Finding CheckDaemonsDisk(uint64_t free,
                         std::optional<uint64_t> files,
                         std::optional<uint64_t> reserve,
                         std::optional<uint64_t> log_bytes) {
  Finding finding{.check = "disk",
                  .what = std::to_string(free / kMiB) + " MiB free where the daemon's data lies"};
  JudgeRoom(free, std::nullopt, reserve, &finding);
  JudgeInodes(files, &finding);
  JudgeRestart(free, log_bytes, &finding);
  return finding;
}

Finding CheckDisk(const std::string& directory, std::optional<uint64_t> reserve) {
  Finding finding{.check = "disk"};

  struct statvfs info {};

  if (statvfs(directory.c_str(), &info) != 0) {
    const int error = errno;
    finding.result = Result::kWarn;
    finding.what = directory + ": " + ErrnoText(error);
    finding.cure = error == EACCES ? "run it as the daemon's user, or with sudo"
                   : error == ENOENT || error == ENOTDIR
                       ? "name the daemon's data_dir with --data-dir"
                       : "why: dmesg; then mount it anew";
    return finding;
  }
  if (info.f_blocks == 0) {
    finding.what = directory + ": its file system tells no sizes; watch its room yourself";
    return finding;
  }
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  const uint64_t whole = std::max<uint64_t>(uint64_t{info.f_blocks} * info.f_frsize, 1);
  finding.what = directory + ": " + std::to_string(free / kMiB) + " MiB free of " +
                 std::to_string(whole / kMiB) + " MiB";
  if ((info.f_flag & ST_RDONLY) != 0) {
    finding.result = Result::kFail;
    finding.what += ", mounted read-only";
    finding.cure = "why: dmesg; then mount it writable: the daemon cannot start here";
    return finding;
  }
  JudgeRoom(free, whole, reserve, &finding);
  JudgeInodes(info.f_files != 0 ? std::optional<uint64_t>(info.f_favail) : std::nullopt, &finding);
  return finding;
}

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
    finding.result = Result::kWarn;
    finding.what += what;
    finding.cure = cure;
  };
  if (const double refused = Figure(page, "delayd_connections_refused_total").value_or(0);
      refused > 0) {
    warn(", " + number(refused) + " were refused since it started", kTooManyOpen);
  }
  // Beyond this share, the daemon refuses connections over TCP.
  if (*open * 8 >= *max * 7) {
    warn(", more are refused, over TCP at least", kTooManyOpen);
  }
  // The files that the daemon wants for its store, besides its connections.
  constexpr double kOtherFiles = 1024;
  const std::optional<double> files = Figure(page, "process_max_fds");
  if (files && *files < *max + kOtherFiles) {
    warn("; there may be no more, since it may open " + number(*files) + " files only",
         "raise the limit of open files: LimitNOFILE= of its unit, or ulimit -n, and restart it");
  }
  return finding;
}

std::optional<Finding> CompareClocks(Millis ahead) {
  if (ahead == Millis(0)) {
    return std::nullopt;
  }
  return Finding{.check = "clock",
                 .result = Result::kWarn,
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
  const int clock = adjtimex(&state);
  if (now < WallFromMillis(kYear2024)) {
    finding.result = Result::kFail;
    finding.what += ": the clock is not set; jobs with --at would wait for years";
    finding.cure = "set it: timedatectl set-ntp true";
  } else if (clock == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    finding.result = Result::kWarn;
    finding.what += ": nothing keeps the clock in step (jobs with --in do not mind)";
    finding.cure = "install systemd-timesyncd or chrony, then: timedatectl set-ntp true";
  }
  return finding;
}

}  // namespace delayd::cli

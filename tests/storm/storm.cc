#include "tests/storm/storm.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "protocol/client.h"
#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "tests/storm/stopped_store.h"
#include "tests/support/files.h"
#include "tests/support/notify_socket.h"
#include "tests/support/process.h"

namespace delayd::storm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kKeyRetentionMs = int64_t{24} * 3600 * 1000;
constexpr Millis kTimeout{60'000};

bool AllThreadsStopped(pid_t pid) {
  for (const fs::directory_entry& thread :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    // "PID (name) STATE ..."
    const std::string stat = test::ReadFile(thread.path().string() + "/stat");
    const size_t state = stat.rfind(')') + 2;
    if (state >= stat.size() || stat[state] != 'T') {
      return false;
    }
  }
  return true;
}

std::string FinalEntry(const JobView& job) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(job.id));
  entry.String("state", JobStateName(job.state));
  entry.String("payload", job.payload ? LabelOf(*job.payload) : "none");
  entry.Number("due", static_cast<uint64_t>(ToMillis(job.due)));
  return entry.Take();
}

}  // namespace

Storm::Storm(const StormOptions& options)
    : options_(options),
      server_("unix:" + options.directory + "/d.sock"),
      random_(options.seed),
      history_(history_path(), 0) {
  history_.KeyRetention(kKeyRetentionMs);
}

Storm::~Storm() = default;

bool Storm::TryStart(const std::map<std::string, std::string>& fault) {
  const test::NotifySocket notify(options_.directory + "/notify.sock");
  test::ProcessOptions options;
  options.argv = {DELAYD_BIN_DIR "/delayd_crashing",
                  "--data-dir",
                  options_.data_dir,
                  "--api-socket",
                  options_.directory + "/d.sock"};
  options.env = {{"NOTIFY_SOCKET", options_.directory + "/notify.sock"},
                 {"DELAYD_BEANSTALK_SOCKET", tube_socket()},
                 {"DELAYD_MEMORY_HORIZON", "1s"},
                 {"DELAYD_DEFAULTS_LEASE", "2s"},
                 {"DELAYD_DEFAULTS_BACKOFF_INITIAL", "50ms"},
                 {"DELAYD_DEFAULTS_BACKOFF_MAX", "400ms"}};
  options.env.insert(fault.begin(), fault.end());
  options.stderr_path = options_.directory + "/log";
  daemon_ = std::make_unique<test::Process>(options);
  return notify.WaitForReady(daemon_.get());
}

void Storm::StartAgain() {
  if (!ok()) {
    return;
  }
  if (!TryStart()) {
    Violation("the daemon does not come up again; it says:\n" + LastLogLines());
  }
}

void Storm::StartClients() {
  for (uint32_t proc = 1; proc <= options_.clients + options_.tube_clients; ++proc) {
    test::ProcessOptions options;
    options.argv = {DELAYD_BIN_DIR "/storm_client",
                    proc <= options_.clients ? server_ : "beanstalk:" + tube_socket(),
                    history_path(),
                    std::to_string(proc),
                    std::to_string(options_.seed)};
    options.stderr_path = options_.directory + "/clients.log";
    clients_.push_back(std::make_unique<test::Process>(options));
  }
}

std::string Storm::Log() const {
  return test::ReadFile(options_.directory + "/log");
}

std::string Storm::LastLogLines() const {
  const std::string log = Log();
  return log.substr(log.size() > 2000 ? log.size() - 2000 : 0);
}

// Between the death of one daemon and the start of the next.
void Storm::NoteDeath(bool look) {
  daemon_.reset();
  history_.Note("kill", {});
  for (const auto& client : clients_) {
    if (client->HasEnded()) {
      Violation("a client has given up:\n" + test::ReadFile(options_.directory + "/clients.log"));
      return;
    }
  }
  if (look || random_() % 4 == 0) {
    NoteStore();
  }
}

bool Storm::WaitForDeath(int milliseconds) {
  return test::WaitUntil([this] { return daemon_->HasEnded(); },
                         std::chrono::milliseconds(milliseconds));
}

void Storm::Begin() {
  for (const CrashPointCase& point : CrashPointCases()) {
    if (point.when == Reached::kOnFirstStart && ok()) {
      CrashAt(point, 1);
      std::error_code error;
      fs::remove_all(options_.data_dir, error);
    }
  }
  StartAgain();
  StartClients();
}

void Storm::KillAtRandom() {
  const auto moment = static_cast<int>(random_() % (random_() % 8 == 0 ? 1500 : 250));
  if (WaitForDeath(moment)) {
    Violation("the daemon ended by itself:\n" + LastLogLines());
  }
  daemon_->Signal(SIGKILL);
  daemon_->Wait();
  NoteDeath();
  StartAgain();
}

void Storm::StopInOrder() {
  WaitForDeath(static_cast<int>(random_() % 200));
  daemon_->Signal(SIGTERM);
  const test::ProcessResult result = daemon_->Wait();
  if (result.exit_code != 0) {
    Violation("a stop in order ended with exit code " + std::to_string(result.exit_code) +
              ", signal " + std::to_string(result.signal) + ":\n" + LastLogLines());
  }
  NoteDeath();
  StartAgain();
}

bool Storm::CrashAt(const CrashPointCase& point, uint32_t hit) {
  const std::string crash_at = std::string(point.name) + ":" + std::to_string(hit);
  if (point.when != Reached::kOnFirstStart) {
    daemon_->Signal(SIGKILL);
    daemon_->Wait();
    NoteDeath();
    if (point.when == Reached::kOnTornStart) {
      TearNewestLog();
    }
  }
  const bool ready = TryStart({{"DELAYD_CRASH_AT", crash_at}});
  const bool at_start = point.when != Reached::kUnderLoad && point.when != Reached::kOnStop;
  bool died = !ready && daemon_->HasEnded();
  if (!ready && !died) {
    Violation("with a crash at " + crash_at + " the daemon hangs at its start:\n" + LastLogLines());
  }
  if (ready && !at_start) {
    if (point.when == Reached::kOnStop) {
      WaitForDeath(30);
      daemon_->Signal(SIGTERM);
    }
    died = WaitForDeath(5000);
  }
  if (!died) {
    daemon_->Signal(SIGKILL);
  }
  const test::ProcessResult result = daemon_->Wait();
  const bool reached = died && result.signal == SIGKILL;
  if (died && !reached && point.when != Reached::kOnStop) {
    Violation("with a crash at " + crash_at + " the daemon ended with exit code " +
              std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal) +
              ":\n" + LastLogLines());
  }
  NoteDeath();
  StartAgain();
  if (point.when == Reached::kOnFirstStart && ok()) {
    daemon_->Signal(SIGKILL);
    daemon_->Wait();
    daemon_.reset();
  }
  return reached;
}

bool Storm::FailIo(const IoFaultCase& fault, uint32_t call) {
  daemon_->Signal(SIGKILL);
  daemon_->Wait();
  NoteDeath();
  const std::string what = std::string(fault.call) + ":" + std::to_string(call) + ":" + fault.fault;
  const size_t log_begin = Log().size();
  const bool ready = TryStart({{"DELAYD_IO_FAULT", what}});
  const bool must_end = fault.ends && !(ready && StruckOptionsFile(Log().substr(log_begin)));
  const bool ended = !ready || WaitForDeath(must_end ? 60'000 : 500);
  if (!ended) {
    daemon_->Signal(SIGKILL);
  }
  const test::ProcessResult result = daemon_->Wait();
  if (!ended && must_end) {
    Violation("I17: after " + what + " the daemon goes on:\n" + LastLogLines());
  } else if (ended && (result.signal != 0 || result.exit_code == 0)) {
    Violation("I17: after " + what + " the daemon ended with exit code " +
              std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal) +
              ":\n" + LastLogLines());
  }
  NoteDeath(true);
  StartAgain();
  return ended;
}

void Storm::CutPower(CutFileSystem* disk) {
  WaitForDeath(static_cast<int>(20 + random_() % 300));
  // Between two of its system calls: an fsync that is under way when this ioctl comes may be
  // answered with a success that never was, which is the tool's fault and no disk's.
  daemon_->Signal(SIGSTOP);
  if (!test::WaitUntil([this] { return AllThreadsStopped(daemon_->pid()); })) {
    Violation("the daemon cannot be held still for the cut");
  }
  std::string error = disk->Cut();
  daemon_->Signal(SIGKILL);
  daemon_->Wait();
  daemon_.reset();
  error = error.empty() ? disk->MountAgain() : error;
  if (!error.empty()) {
    Violation("the cut itself failed: " + error);
    history_.Note("kill", {});
    return;
  }
  NoteDeath();
  StartAgain();
}

// What a power cut leaves of a write that nobody was told of: some bytes that are no record.
void Storm::TearNewestLog() {
  std::string newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.data_dir)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".log") && path > newest) {
      newest = path;
    }
  }
  std::ofstream log(newest, std::ios::binary | std::ios::app);
  for (uint64_t n = 1 + random_() % 3000; n > 0; --n) {
    log.put(static_cast<char>(1 + random_() % 255));
  }
}

// What is on disk goes into the history: the checker holds it against what was answered.
void Storm::NoteStore() {
  const auto store = ReadStoppedStore(options_.data_dir);
  // A first start that was cut short has left nothing to read.
  if (!store.ok() && fs::exists(options_.data_dir + "/FORMAT")) {
    return Violation("the stopped store cannot be read: " + std::string(store.status().message()));
  }
  if (!store.ok()) {
    return;
  }
  history_.Disk(*store);
  if (!store->faults.empty()) {
    Violation("I14: " + store->faults.front());
  }
}

// Nobody has touched a record: whatever the daemon calls damaged is its own doing.
void Storm::CheckLog() {
  std::istringstream log(Log());
  for (std::string line; std::getline(log, line);) {
    if (line.find("damaged record") != std::string::npos) {
      return Violation("I14: the daemon says: " + line);
    }
  }
}

void Storm::WaitUntilDrained() {
  auto client = protocol::Client::Create(server_);
  DELAYD_CHECK(client.ok());
  const auto empty = [&](const std::string& target) {
    const auto response = (*client)->Call("GET", target, "", "", kTimeout);
    if (!response.ok() || response->status != 200) {
      return false;
    }
    const auto page = protocol::ParseJobPage(response->body);
    return page.ok() && page->jobs.empty();
  };
  const auto drained = [&] {
    return empty("/v1/jobs?due_before=10m&limit=1") && empty("/v1/jobs?state=ready&limit=1") &&
           empty("/v1/jobs?state=leased&limit=1");
  };
  const auto ended = [&] {
    uint64_t jobs = 0;
    const auto response = (*client)->Call("GET", "/v1/stats", "", "", kTimeout);
    const auto stats = protocol::ParseStats(response.ok() ? response->body : "");
    for (const protocol::Stat& stat : stats.ok() ? *stats : std::vector<protocol::Stat>()) {
      if (stat.name == "acked" || stat.name == "died") {
        jobs += std::get<uint64_t>(stat.value);
      }
    }
    return jobs;
  };
  // On a machine that others use too the workers may need their time, as long as they get on.
  uint64_t before = 0;
  uint64_t now = 0;
  do {
    if (test::WaitUntil(drained)) {
      return;
    }
    before = std::exchange(now, ended());
  } while (now > before);
  Violation("I3: what is due does not come to its end");
}

void Storm::ListWhatIsLeft() {
  auto client = protocol::Client::Create(server_);
  DELAYD_CHECK(client.ok());
  std::vector<std::string> left;
  for (const char* state : {"", "queue=a&state=dead&", "queue=b&state=dead&"}) {
    std::string cursor;
    do {
      const auto response =
          (*client)->Call("GET",
                          std::string("/v1/jobs?") + state + "limit=500" +
                              (cursor.empty() ? "" : "&cursor=" + protocol::PercentEncode(cursor)),
                          "",
                          "",
                          kTimeout);
      if (response.ok() && response->status == 404) {
        break;  // no job was ever put into this queue
      }
      if (!response.ok() || response->status != 200) {
        return Violation(
            "the final list fails: " +
            (response.ok() ? response->body : std::string(response.status().message())));
      }
      const auto page = protocol::ParseJobPage(response->body);
      DELAYD_CHECK(page.ok());
      for (const JobView& listed : page->jobs) {
        const auto shown = (*client)->Call(
            "GET", "/v1/jobs/" + std::to_string(ToInt(listed.id)), "", "", kTimeout);
        const auto job = shown.ok() ? protocol::ParseJob(shown->body) : shown.status();
        if (!job.ok() || shown->status != 200) {
          return Violation("job " + std::to_string(ToInt(listed.id)) +
                           " is listed and cannot be shown");
        }
        left.push_back(FinalEntry(*job));
      }
      cursor = page->next_cursor;
    } while (!cursor.empty());
  }
  history_.Note("final", left);
}

void Storm::Finish() {
  if (ok()) {
    for (const auto& client : clients_) {
      client->Signal(SIGUSR1);
    }
    WaitUntilDrained();
  }
  for (const auto& client : clients_) {
    client->Signal(SIGTERM);
  }
  for (const auto& client : clients_) {
    const test::ProcessResult ended = client->Wait();
    // In a very short storm it may not have come to its signal handlers.
    if (ended.exit_code != 0 && ended.signal != SIGTERM && ended.signal != SIGUSR1) {
      Violation("a client has given up:\n" + test::ReadFile(options_.directory + "/clients.log"));
    }
  }
  if (daemon_ == nullptr || daemon_->HasEnded()) {
    return;
  }
  ListWhatIsLeft();
  daemon_->Signal(SIGTERM);
  const int code = daemon_->Wait().exit_code;
  if (code != 0) {
    Violation("the last stop ended with exit code " + std::to_string(code) + ":\n" +
              LastLogLines());
  }
  daemon_.reset();
  NoteStore();
  CheckLog();
  checker::History history;
  const Status read = checker::ReadHistory(history_path(), &history);
  if (!read.ok()) {
    return Violation("history: " + std::string(read.message()));
  }
  verdict_ = checker::Check(std::move(history));
  for (const checker::Violation& one : verdict_.violations) {
    Violation(one.invariant + ": line " + std::to_string(one.line) + ": " + one.what);
  }
}

}  // namespace delayd::storm

#include "tests/storm/rot_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "protocol/client.h"
#include "protocol/job_json.h"
#include "tests/support/files.h"
#include "tests/support/notify_socket.h"
#include "tests/support/process.h"

namespace delayd::storm {
namespace {

// A daemon that does not answer within it counts as one that has ended.
constexpr Millis kTimeout{60'000};

class DaemonInspection {
 public:
  DaemonInspection(const std::string& directory,
                   const std::string& file,
                   const RotJobs& jobs,
                   const std::string& work)
      : directory_(directory), file_(file), jobs_(jobs), work_(work) {}

  RotFinding Run() {
    ::unlink((work_ + "/log").c_str());
    const test::NotifySocket notify(work_ + "/notify.sock");
    test::ProcessOptions options;
    options.argv = {
        DELAYD_BIN_DIR "/delayd", "--data-dir", directory_, "--api-socket", work_ + "/d.sock"};
    // The store is of a year in which no clock stands today: its jobs are not to wait for that.
    options.env = {{"NOTIFY_SOCKET", work_ + "/notify.sock"}, {"DELAYD_CLOCK_MAX_JUMP", "0s"}};
    options.stderr_path = work_ + "/log";
    test::Process daemon(options);
    auto client = protocol::Client::Create("unix:" + work_ + "/d.sock");
    DELAYD_CHECK(client.ok());
    client_ = std::move(client).value();
    const bool ready = notify.WaitForReady(&daemon);
    const bool hangs = !ready && !daemon.HasEnded();
    if (ready) {
      AskForKeys();
      TakeAll();
      AskForTheRest();
    }
    daemon.Signal(SIGTERM);
    const test::ProcessResult ended = daemon.Wait();
    ReadLog();
    // A refusal, or an orderly end after damage was met; never a crash. Our signal may come when
    // the daemon has stopped to serve and closes its store, where nobody waits for one any more.
    const bool was_ending =
        ended.signal == SIGTERM && std::ranges::any_of(finding_.named, [](const std::string& line) {
          return line.find(" error storage failed; the daemon ends ") != std::string::npos;
        });
    if (ended.signal != 0 && !was_ending) {
      finding_.violation = "the daemon died of signal " + std::to_string(ended.signal);
    } else if (hangs) {
      finding_.violation = "the daemon is neither ready nor has it ended within a minute";
    } else if (!ready && finding_.named.empty()) {
      finding_.violation = "the daemon refuses to start and says nothing";
    } else if (ready && ended.exit_code == 0) {
      Judge();
    }
    finding_.harmless = finding_.violation.empty() && finding_.named.empty();
    return std::move(finding_);
  }

 private:
  std::optional<protocol::HttpResponse> Call(const char* method,
                                             const std::string& target,
                                             const std::string& body) {
    auto response =
        client_->Call(method, target, body.empty() ? "" : "application/json", body, kTimeout);
    if (!response.ok()) {
      return std::nullopt;  // it has ended; its log says why
    }
    if (response->status >= 400) {
      finding_.named.push_back(response->body);
    }
    return *std::move(response);
  }

  void AskForKeys() {
    for (const auto& [id, job] : jobs_) {
      // Of a finished job it is a matter of moments: by the real clock its retention has passed.
      if (job.spec.key.empty() || job.state == JobState::kFinished) {
        continue;
      }
      const auto response = Call("POST", "/v1/jobs", protocol::JobSpecToJson(job.spec));
      if (!response || response->status >= 300) {
        continue;
      }
      const auto answer = protocol::ParseJob(response->body);
      DELAYD_CHECK(answer.ok());
      if (response->status != 200 || answer->id != id) {
        missing_.emplace_back(id, "its key is forgotten");
        strangers_.insert(answer->id);
      }
    }
  }

  void TakeAll() {
    for (const std::string queue : {"a", "b", "c"}) {
      for (bool more = true; more;) {
        const auto response = Call(
            "POST", "/v1/queues/" + queue + "/lease", R"({"count":100,"wait":"0s","lease":"1h"})");
        if (!response || response->status >= 300) {
          break;
        }
        const auto page = protocol::ParseJobPage(response->body);
        DELAYD_CHECK(page.ok());
        for (const JobView& job : page->jobs) {
          Got(job, JobState::kScheduled);
        }
        more = !page->jobs.empty();
      }
    }
  }

  void Got(const JobView& job, JobState state) {
    const auto found = jobs_.find(job.id);
    const std::string name = "job " + std::to_string(ToInt(job.id));
    if (found == jobs_.end()) {
      if (!strangers_.contains(job.id)) {
        finding_.violation = name + " was never enqueued";
      }
      return;
    }
    if (job.payload.value_or("") != found->second.spec.payload) {
      finding_.violation = name + " is given with another payload";
    }
    if (found->second.state != state) {
      missing_.emplace_back(job.id, "it had come to its end and is given again");
    }
    seen_.insert(job.id);
  }

  void AskForTheRest() {
    for (const auto& [id, job] : jobs_) {
      if (seen_.contains(id) || job.state == JobState::kFinished) {
        continue;
      }
      const auto response = Call("GET", "/v1/jobs/" + std::to_string(ToInt(id)), "");
      const auto shown = response && response->status == 200
                             ? protocol::ParseJob(response->body)
                             : StatusOr<JobView>(NotFound("not shown"));
      if (shown.ok() && shown->state == JobState::kDead) {
        Got(*shown, JobState::kDead);
      } else {
        missing_.emplace_back(id, "it is not there");
      }
    }
  }

  void ReadLog() {
    std::istringstream log(test::ReadFile(work_ + "/log"));
    for (std::string line; std::getline(log, line);) {
      if (line.find(" info ") == std::string::npos) {
        finding_.named.push_back(line);
      }
    }
  }

  // An answer "not found" is no word about damage; a text that names the job's damage, or the file,
  // is.
  void Judge() {
    for (const auto& [id, what] : missing_) {
      const std::string name = "job " + std::to_string(ToInt(id)) + ":";
      const bool named = std::ranges::any_of(finding_.named, [&](const std::string& text) {
        return text.find(name) != std::string::npos ||
               text.find(file_.substr(0, file_.find('.'))) != std::string::npos;
      });
      if (!named) {
        finding_.violation =
            "job " + std::to_string(ToInt(id)) + ": " + what + ", and nobody says so";
      }
    }
  }

  const std::string directory_;
  const std::string file_;
  const RotJobs& jobs_;
  const std::string work_;
  std::unique_ptr<protocol::Client> client_;
  RotFinding finding_;
  std::set<JobId> seen_;
  std::set<JobId> strangers_;
  std::vector<std::pair<JobId, std::string>> missing_;
};

}  // namespace

RotFinding CheckRottenDaemon(const std::string& directory,
                             const std::string& file,
                             const RotJobs& jobs,
                             const std::string& work) {
  return DaemonInspection(directory, file, jobs, work).Run();
}

}  // namespace delayd::storm

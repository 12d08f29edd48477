#include "daemon/monitor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/log.h"
#include "protocol/duration.h"
#include "protocol/stats_json.h"

namespace delayd {

Monitor::Monitor(MonitorOptions options,
                 const engine::Engine* engine,
                 std::function<storage::RocksFigures()> store,
                 const http::RequestCounts* requests)
    : options_(std::move(options)),
      engine_(engine),
      store_(std::move(store)),
      requests_(requests) {}

std::optional<Monitor::Finding> Monitor::CheckCommit(std::optional<Millis> running) const {
  const bool stuck = running && *running > options_.commit_stuck;
  if (!stuck && (!running || *running < kCommitLate)) {
    return std::nullopt;
  }
  return Finding{.code = stuck ? "commit_stuck" : "commit_late",
                 .detail = "a commit has been under way for " + protocol::FormatDuration(*running) +
                           "; the disk does not answer: look at the kernel's log",
                 .ready = !stuck,
                 .healthy = !stuck};
}

std::vector<Monitor::Finding> Monitor::Findings(const Now& now) const {
  std::vector<Finding> findings;
  const ServerFigures server = server_ != nullptr ? server_->Figures(now) : ServerFigures();
  if (std::optional<Finding> commit = CheckCommit(server.commit_running)) {
    findings.push_back(*std::move(commit));
  }
  if (const Status refusal = engine_->enqueue_refusal(); !refusal.ok()) {
    findings.push_back(
        {.code = std::string(refusal.reason()), .detail = refusal.message(), .ready = false});
  }
  if (const Status backlog = engine_->CheckBacklog(); !backlog.ok()) {
    findings.push_back({.code = std::string(backlog.reason()), .detail = backlog.message()});
  }
  if (engine_->draining()) {
    // Still ready: workers that finish the remaining jobs must be let in.
    findings.push_back({.code = "draining",
                        .detail = "new jobs are refused, as SIGUSR1 or 'delayctl drain' wanted it; "
                                  "'delayctl drain end' takes them again"});
  }
  if (clock_ != nullptr && clock_->state() != engine::ClockState::kTrusted) {
    // Still ready: everything else works, and taking the daemon out of service would only make more
    // jobs late.
    findings.push_back({.code = "clock_suspect", .detail = clock_->Explain()});
  }
  if (const Status end = tls_ != nullptr ? tls_->CheckEnd(now.wall) : OkStatus(); !end.ok()) {
    findings.push_back({.code = std::string(end.reason()), .detail = end.message()});
  }
  if (server.stopping) {
    findings.push_back(
        {.code = "stopping", .detail = "the daemon is being stopped", .ready = false});
  }
  return findings;
}

http::Response Monitor::Metrics(const Now& now) const {
  const std::vector<Finding> findings = Findings(now);
  ServiceFigures figures{
      .version = options_.version,
      .engine = engine_->Figures(options_.queues_by_name),
      .server = server_ != nullptr ? server_->Figures(now) : ServerFigures(),
      .store = store_ ? store_() : storage::RocksFigures(),
      .process = ReadProcessFigures(),
      .log_lines = log::Counts(),
      .requests = requests_,
      .clock = clock_ != nullptr ? clock_->state() : engine::ClockState::kTrusted,
      .clock_suspicions = clock_ != nullptr ? clock_->suspicions() : 0,
      .tls = tls_ != nullptr ? tls_->figures() : TlsFigures(),
      .certificate_to_renew = tls_ != nullptr && !tls_->CheckEnd(now.wall).ok(),
      .disk_free = AskDisk(options_.disk.free_bytes),
      .disk_free_files = AskDisk(options_.disk.free_files),
      .disk_reserve = options_.disk.reserve,
      .counts_users = options_.counts_users,
      .connections_max = options_.connections_max,
      .draining = engine_->draining(),
      .ready = std::all_of(
          findings.begin(), findings.end(), [](const Finding& one) { return one.ready; })};
  return {.content_type = kMetricsContentType, .body = MetricsText(figures)};
}

std::optional<uint64_t> Monitor::AskDisk(const DiskQuestion& question) const {
  if (!question) {
    return std::nullopt;
  }
  const StatusOr<uint64_t> free = question(options_.disk.directory);
  return free.ok() && *free < std::numeric_limits<uint64_t>::max() ? std::optional(*free)
                                                                   : std::nullopt;
}

http::Response Monitor::Health(const Now& now) const {
  return Report("ok", Findings(now), &Finding::healthy);
}

http::Response Monitor::Readiness(const Now& now) const {
  return Report("ready", Findings(now), &Finding::ready);
}

http::Response Monitor::Report(std::string_view good,
                               const std::vector<Finding>& findings,
                               bool Finding::*verdict) const {
  protocol::Health health{.status = std::string(good), .version = options_.version};
  bool well = true;
  for (const Finding& finding : findings) {
    well = well && finding.*verdict;
    health.reasons.push_back({finding.code, finding.detail});
  }
  if (!health.reasons.empty()) {
    health.status = well ? "degraded" : "not " + std::string(good);
  }
  return {.status = well ? 200 : 503, .body = protocol::HealthToJson(health)};
}

}  // namespace delayd

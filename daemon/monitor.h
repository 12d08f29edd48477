// daemon/monitor.h — the daemon's answers about itself: metrics, health, readiness.
//
// What:    gathers the figures of engine, turn, store and process on request only. A finding is
//          something that is not as promised; the table in docs/operations/health.md lists its
//          consequences.
// Units:   base/time.h.
// Errors:  none.
// Threads: the core thread.
// Cost:    nothing until asked; a page of metrics costs a few hundred microseconds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "daemon/disk_reserve.h"
#include "daemon/engine/engine.h"
#include "daemon/http/request_counts.h"
#include "daemon/http/service_report.h"
#include "daemon/metrics.h"
#include "daemon/server.h"
#include "daemon/tls_session.h"
#include "daemon/trusted_clock.h"
#include "storage/rocks_figures.h"

namespace delayd {

struct MonitorOptions {
  std::string version;
  uint32_t queues_by_name = 200;  // queues with series of their own; the others are summed up
  uint32_t connections_max = 0;
  bool counts_users = false;  // limits.jobs_per_user is set
  Millis commit_stuck = kCommitStuck;
  DiskReserveOptions disk;
};

class Monitor final : public http::ServiceReport {
 public:
  // Something that is not as promised.
  struct Finding {
    std::string code;
    std::string detail;  // for people: what it means, and what to do
    bool ready = true;   // GET /readyz may still answer 200
    bool healthy = true;
  };

  // `engine` and `requests` must outlive the monitor.
  Monitor(MonitorOptions options,
          const engine::Engine* engine,
          std::function<storage::RocksFigures()> store,
          const http::RequestCounts* requests);

  // The server that the figures of the turn come from; it is made after the monitor.
  void Watch(const Server* server) { server_ = server; }

  void Watch(const TrustedClock* clock) { clock_ = clock; }

  void Watch(const TlsDoor* tls) { tls_ = tls; }

  http::Response Metrics(const Now& now) const override;
  http::Response Health(const Now& now) const override;
  http::Response Readiness(const Now& now) const override;

  std::vector<Finding> Findings(const Now& now) const;

  // The finding about a commit that has been running for so long; none: it is fine.
  std::optional<Finding> CheckCommit(std::optional<Millis> running) const;

 private:
  using DiskQuestion = std::function<StatusOr<uint64_t>(const std::string& directory)>;

  // None if the disk cannot be queried, or has no fixed limit.
  std::optional<uint64_t> AskDisk(const DiskQuestion& question) const;
  http::Response Report(std::string_view good,
                        const std::vector<Finding>& findings,
                        bool Finding::*verdict) const;

  const MonitorOptions options_;
  const engine::Engine* const engine_;
  const std::function<storage::RocksFigures()> store_;
  const http::RequestCounts* const requests_;
  const Server* server_ = nullptr;
  const TrustedClock* clock_ = nullptr;
  const TlsDoor* tls_ = nullptr;
};

}  // namespace delayd

#include "daemon/metrics.h"

#include <string_view>
#include <utility>
#include <vector>

#include "daemon/http/router.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace delayd {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Divisors rather than factors: 100 * 1e-6 is not exactly 0.0001, and queries ask for le="0.0001".
constexpr double kMillisPerSecond = 1e3;
constexpr double kMicrosPerSecond = 1e6;

class Page {
 public:
  void Counter(const char* name, const char* help, double value) {
    Open(name, help, MetricType::Counter);
    AddCounter({}, value);
  }

  void Counter(const char* name, const char* help, uint64_t value) {
    Counter(name, help, static_cast<double>(value));
  }

  void Gauge(const char* name, const char* help, double value) {
    Open(name, help, MetricType::Gauge);
    AddGauge({}, value);
  }

  void Gauge(const char* name, const char* help, uint64_t value) {
    Gauge(name, help, static_cast<double>(value));
  }

  // `per_unit`: how many of the histogram's units make one unit of the metric.
  void AddHistogram(const char* name,
                    const char* help,
                    const Histogram& histogram,
                    double per_unit) {
    Open(name, help, MetricType::Histogram);
    ClientMetric metric;
    uint64_t sum = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      sum += histogram.count_in(i);
      metric.histogram.bucket.push_back(
          {.cumulative_count = sum,
           .upper_bound = static_cast<double>(histogram.bounds()[i]) / per_unit});
    }
    metric.histogram.sample_count = histogram.count();
    metric.histogram.sample_sum = static_cast<double>(histogram.sum()) / per_unit;
    families_.back().metric.push_back(std::move(metric));
  }

  // Begins a metric; the samples added next belong to it.
  void Open(const char* name, const char* help, MetricType type) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
  }

  void AddCounter(Labels labels, uint64_t value) {
    AddCounter(std::move(labels), static_cast<double>(value));
  }

  void AddCounter(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    families_.back().metric.push_back(std::move(metric));
  }

  void AddGauge(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }

  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

// No counter for the sum of all other queues: its members change, so it would be meaningless.
void AddQueues(const std::vector<engine::QueueView>& queues, Page* page) {
  page->Open(
      "delayd_queue_handed_out_total", "Jobs handed to a worker, by queue.", MetricType::Counter);
  for (const engine::QueueView& queue : queues) {
    page->AddCounter({{"queue", queue.name}}, queue.handed_out);
  }
  page->Open("delayd_queue_paused", "1: the queue hands nothing out.", MetricType::Gauge);
  for (const engine::QueueView& queue : queues) {
    page->AddGauge({{"queue", queue.name}}, queue.paused ? 1 : 0);
  }
}

void AddJobs(const engine::EngineFigures& engine, Page* page) {
  page->Open("delayd_jobs",
             "Jobs that are stored, by queue and state; due ones that wait on disk are scheduled.",
             MetricType::Gauge);
  const auto add = [page](const engine::QueueView& queue) {
    for (const auto& [state, count] : {std::pair("scheduled", queue.scheduled),
                                       std::pair("ready", queue.ready),
                                       std::pair("leased", queue.leased),
                                       std::pair("dead", queue.dead)}) {
      page->AddGauge({{"queue", queue.name}, {"state", state}}, static_cast<double>(count));
    }
  };
  for (const engine::QueueView& queue : engine.queues) {
    add(queue);
  }
  add(engine.other);
  AddQueues(engine.queues, page);
  const engine::StatsView& totals = engine.totals;
  page->Gauge("delayd_queues",
              "Queues: those with jobs, and the empty ones that are not forgotten.",
              totals.queues);
  page->Gauge(
      "delayd_lease_requests_waiting", "Lease requests that wait for a job.", totals.waiting);
}

void AddUsers(const ServiceFigures& figures, Page* page) {
  const engine::EngineFigures& engine = figures.engine;
  if (figures.counts_users) {
    page->Open("delayd_user_jobs",
               "Jobs stored that count against a user's quota, by user.",
               MetricType::Gauge);
    for (const auto& [user, jobs] : engine.users) {
      page->AddGauge({{"user", user}}, static_cast<double>(jobs));
    }
    page->AddGauge({{"user", "other"}}, static_cast<double>(engine.other_users));
  }
  page->Counter("delayd_quota_refusals_total",
                "Enqueues refused because a queue or a user had as many jobs as it may have.",
                engine.totals.quota_refusals);
}

void AddEvents(const engine::StatsView& totals, Page* page) {
  page->Counter("delayd_jobs_enqueued_total", "New jobs.", totals.enqueued);
  page->Counter("delayd_jobs_existed_total",
                "Enqueues answered with the job that their key named already.",
                totals.existed);
  page->Counter("delayd_jobs_cancelled_total", "Jobs cancelled.", totals.cancelled);
  page->Counter("delayd_jobs_rescheduled_total", "Jobs rescheduled.", totals.rescheduled);
  page->Counter("delayd_jobs_kicked_total", "Dead or scheduled jobs made ready.", totals.kicked);
  page->Counter("delayd_jobs_fired_total", "Timers that came due in memory.", totals.fired);
  page->Counter("delayd_jobs_handed_out_total", "Jobs handed to a worker.", totals.handed_out);
  page->Counter("delayd_jobs_acked_total", "Jobs that a worker finished.", totals.acked);
  page->Counter("delayd_jobs_nacked_total", "Jobs that a worker gave back.", totals.nacked);
  page->Counter("delayd_jobs_buried_total", "Jobs that a worker buried.", totals.buried);
  page->Counter("delayd_jobs_died_total",
                "Jobs that became dead: attempts used up, expired or buried by a worker; without "
                "those enqueued as dead.",
                totals.died);
  page->Counter("delayd_leases_expired_total",
                "Leases that ended without an ack, nack or bury.",
                totals.lease_expired);
  page->Counter(
      "delayd_jobs_damaged_total", "Jobs whose stored record could not be read.", totals.damaged);
}

void AddEngine(const ServiceFigures& figures, Page* page) {
  const engine::EngineFigures& engine = figures.engine;
  AddJobs(engine, page);
  AddUsers(figures, page);
  AddEvents(engine.totals, page);
  page->AddHistogram("delayd_job_lateness_seconds",
                     "From a job's due time until it was handed to a worker.",
                     engine.lateness_ms,
                     kMillisPerSecond);
  page->Gauge("delayd_memory_jobs", "Jobs in memory.", uint64_t{engine.jobs_in_memory});
  page->Gauge("delayd_memory_jobs_max",
              "Jobs that memory.budget has room for.",
              uint64_t{engine.jobs_in_memory_max});
  page->Gauge("delayd_memory_frontier_seconds",
              "Jobs due up to so far from now are in memory; negative: due ones wait on disk.",
              static_cast<double>(engine.frontier_ahead.count()) / kMillisPerSecond);
  page->Gauge("delayd_uncommitted_bytes",
              "Changes that are decided and not durable yet.",
              uint64_t{engine.uncommitted_bytes});
  page->Gauge("delayd_answers_waiting",
              "Answers that wait for their commit.",
              uint64_t{engine.replies_parked});
  page->Gauge(
      "delayd_epoch", "Rises with every start; part of each lease token.", engine.totals.epoch);
}

void AddServer(const ServiceFigures& figures, Page* page) {
  const ServerFigures& server = figures.server;
  page->AddHistogram("delayd_commit_duration_seconds",
                     "From handing a batch to the committer until it was durable.",
                     server.commit_us,
                     kMicrosPerSecond);
  page->AddHistogram(
      "delayd_commit_batch_jobs", "Jobs changed by one commit.", server.commit_jobs, 1);
  page->AddHistogram("delayd_commit_batch_bytes",
                     "Keys and values written by one commit.",
                     server.commit_bytes,
                     1);
  page->Gauge(
      "delayd_commit_running_seconds",
      "How long the commit in flight has been under way; 0: none is.",
      static_cast<double>(server.commit_running.value_or(Millis(0)).count()) / kMillisPerSecond);
  page->Counter("delayd_turns_total", "Turns of the core thread.", server.turns);
  page->Counter(
      "delayd_slow_turns_total", "Turns that took longer than log.slow_turn.", server.slow_turns);
  page->Counter("delayd_slow_commits_total",
                "Commits that took longer than log.slow_commit.",
                server.slow_commits);
  page->Counter("delayd_late_wakes_total",
                "Times the daemon woke 5 s or more too late: stopped, suspended or starved.",
                server.late_wakes);
  if (server.processors_awake) {
    page->Counter("delayd_processors_awake_seconds_total",
                  "How long the machine's processors were kept from sleeping.",
                  static_cast<double>(server.processors_awake->count()) / kMillisPerSecond);
  }
  page->Gauge("delayd_connections", "Connections that are open.", server.connections);
  page->Gauge(
      "delayd_connections_max", "Connections that may be open at once.", figures.connections_max);
  page->Counter("delayd_connections_accepted_total", "Connections that came.", server.accepted);
  page->Counter("delayd_connections_accept_failures_total",
                "Times no connection could be accepted, for want of descriptors or memory.",
                server.accept_failures);
  page->Counter("delayd_connections_refused_total",
                "Connections refused because limits.connections was reached.",
                server.refused);
  page->Counter("delayd_connections_timed_out_total",
                "Connections ended because the client was too slow, or idle for too long.",
                server.timed_out);
  page->Counter(
      "delayd_connections_crowded_out_total",
      "Connections ended because all together held more than 16 times limits.request_body.",
      server.crowded_out);
  page->Counter(
      "delayd_tls_handshakes_total", "TLS handshakes that succeeded.", figures.tls.handshakes);
  page->Counter("delayd_tls_failures_total",
                "TLS handshakes and connections that failed.",
                figures.tls.failed);
  if (figures.tls.certificate_end) {
    page->Gauge("delayd_tls_certificate_expiry_timestamp_seconds",
                "When the certificate that is shown ends, since the Unix epoch.",
                static_cast<double>(ToMillis(*figures.tls.certificate_end)) / kMillisPerSecond);
    page->Gauge("delayd_tls_certificate_to_renew",
                "1: it ends within 14 days or the last fifth of its life, has ended, or is not "
                "valid yet.",
                uint64_t{figures.certificate_to_renew});
  }
}

// "v1/queues/*/lease" -> "/v1/queues/*/lease"
void AddRequests(const http::RequestCounts& requests, Page* page) {
  const std::vector<http::RouteName>& routes = http::Router::RouteNames();
  page->Open("delayd_http_requests_total",
             "Requests answered, by method, route and status.",
             MetricType::Counter);
  requests.ForEach([&](size_t route, int status, uint64_t count) {
    const bool known = route < routes.size();
    page->AddCounter({{"method", known ? std::string(routes[route].method) : "other"},
                      {"route", known ? "/" + std::string(routes[route].path) : "other"},
                      {"code", std::to_string(status)}},
                     count);
  });
}

void AddLog(const std::array<uint64_t, 4>& lines, Page* page) {
  page->Open("delayd_log_messages_total",
             "Events worth a line in the log, by level, also those that were left out.",
             MetricType::Counter);
  constexpr std::array<const char*, 4> kLevels = {"debug", "info", "warn", "error"};
  for (size_t level = 0; level < lines.size(); ++level) {
    page->AddCounter({{"level", kLevels[level]}}, lines[level]);
  }
}

void AddTables(const storage::RocksFigures& store, Page* page) {
  const auto by_table = [&](const char* name, const char* help, auto member) {
    page->Open(name, help, MetricType::Gauge);
    for (size_t i = 0; i < store.tables.size(); ++i) {
      const std::string table(storage::TableName(static_cast<storage::Table>(i)));
      page->AddGauge({{"table", table}}, static_cast<double>(store.tables[i].*member));
    }
  };
  using storage::TableFigures;
  by_table(
      "delayd_store_file_bytes", "Size of the table files, by table.", &TableFigures::file_bytes);
  by_table("delayd_store_memtable_bytes",
           "Rows in memory that are not in a table file yet, by table.",
           &TableFigures::memtable_bytes);
  by_table("delayd_store_pending_compaction_bytes",
           "What compaction has yet to rewrite, by table.",
           &TableFigures::pending_compaction_bytes);
  by_table(
      "delayd_store_rows_estimate", "Rows, by RocksDB's estimate.", &TableFigures::rows_estimate);
  page->Open("delayd_store_files", "Table files, by table and level.", MetricType::Gauge);
  for (size_t i = 0; i < store.tables.size(); ++i) {
    const std::string table(storage::TableName(static_cast<storage::Table>(i)));
    for (size_t level = 0; level < TableFigures::kLevels; ++level) {
      page->AddGauge({{"table", table}, {"level", std::to_string(level)}},
                     static_cast<double>(store.tables[i].files[level]));
    }
  }
}

void AddStore(const storage::RocksFigures& store, Page* page) {
  AddTables(store, page);
  page->AddHistogram("delayd_fsync_duration_seconds",
                     "Time in fsync of the write-ahead log; of one commit in eight.",
                     store.fsync_us,
                     kMicrosPerSecond);
  page->Gauge("delayd_store_wal_bytes",
              "Size of the write-ahead log; some 64 MiB more are allocated on disk.",
              store.wal_bytes);
  page->Gauge(
      "delayd_store_block_cache_bytes", "Blocks kept in the cache.", store.block_cache_bytes);
  page->Gauge("delayd_store_block_cache_capacity_bytes",
              "Room in the block cache.",
              store.block_cache_capacity_bytes);
  page->Gauge("delayd_store_flushes_running", "Flushes under way.", store.running_flushes);
  page->Gauge(
      "delayd_store_compactions_running", "Compactions under way.", store.running_compactions);
  page->Gauge("delayd_store_writes_stopped",
              "1: RocksDB lets no write through until it has caught up.",
              store.write_stopped);
  page->Counter("delayd_store_background_errors_total",
                "Flushes and compactions that failed; the daemon ends at the first.",
                store.background_errors);
  page->Gauge("delayd_store_tables_waiting",
              "Tables whose compaction waits for room on the disk.",
              store.tables_waiting);
}

void AddDisk(const ServiceFigures& figures, Page* page) {
  if (figures.disk_free) {
    page->Gauge("delayd_disk_free_bytes",
                "What the daemon may still write where the store is.",
                *figures.disk_free);
  }
  if (figures.disk_free_files) {
    page->Gauge("delayd_disk_free_inodes",
                "Files that may still be made where the store is; none: nobody counts them.",
                *figures.disk_free_files);
  }
  page->Gauge("delayd_disk_reserve_bytes",
              "Below so much free space new jobs are refused; 0: never.",
              figures.disk_reserve);
}

void AddProcess(const ProcessFigures& process, Page* page) {
  page->Gauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  page->Gauge("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  page->Gauge("process_open_fds", "Open file descriptors.", process.open_files);
  page->Gauge("process_max_fds", "Limit of open file descriptors.", process.open_files_max);
  page->Gauge("process_threads", "Threads.", process.threads);
  page->Open("process_cpu_seconds_total", "User and system CPU time.", MetricType::Counter);
  page->AddCounter({}, process.cpu_seconds);
  page->Gauge("process_start_time_seconds",
              "Start of the process since the Unix epoch.",
              process.start_seconds);
}

}  // namespace

std::string MetricsText(const ServiceFigures& figures) {
  Page page;
  page.Open("delayd_build_info", "1; the version is in the label.", MetricType::Gauge);
  page.AddGauge({{"version", figures.version}}, 1);
  page.Gauge("delayd_ready", "1: GET /readyz answers 200.", uint64_t{figures.ready});
  page.Gauge("delayd_draining",
             "1: new jobs are refused until the drain ends.",
             uint64_t{figures.draining});
  page.Gauge("delayd_clock_suspect",
             "1: the wall clock is behind what it was, or held.",
             uint64_t{figures.clock != engine::ClockState::kTrusted});
  page.Gauge("delayd_clock_held",
             "1: the wall clock is too far ahead to be believed, and jobs of the wall clock wait.",
             uint64_t{figures.clock == engine::ClockState::kHeld});
  page.Counter("delayd_clock_suspicions_total",
               "How often the wall clock became suspect.",
               figures.clock_suspicions);
  AddEngine(figures, &page);
  AddServer(figures, &page);
  if (figures.requests != nullptr) {
    AddRequests(*figures.requests, &page);
  }
  AddLog(figures.log_lines, &page);
  AddStore(figures.store, &page);
  AddDisk(figures, &page);
  AddProcess(figures.process, &page);
  return page.Text();
}

}  // namespace delayd

// daemon/metrics.h — everything that is counted, as Prometheus reads it.
//
// What:    one document of the text format. docs/operations/metrics.md says what each metric means.
// Units:   base units, as Prometheus wants them: seconds and bytes.
// Errors:  none.
// Threads: a pure function.
// Cost:    a few hundred microseconds; the number of series is bounded by the number of queues that
//          the caller lists by name.
// Source:  Prometheus' naming rules and text format 0.0.4; prometheus-cpp writes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/engine/clock_watch.h"
#include "daemon/engine/engine_figures.h"
#include "daemon/http/request_counts.h"
#include "daemon/process_figures.h"
#include "daemon/server.h"
#include "daemon/tls_session.h"
#include "storage/rocks_figures.h"

namespace delayd {

struct ServiceFigures {
  std::string version;
  engine::EngineFigures engine;
  ServerFigures server;
  storage::RocksFigures store;
  ProcessFigures process;
  std::array<uint64_t, 4> log_lines{};  // by log::Level
  const http::RequestCounts* requests = nullptr;
  engine::ClockState clock = engine::ClockState::kTrusted;
  uint64_t clock_suspicions = 0;
  TlsFigures tls;
  bool certificate_to_renew = false;        // as GET /readyz says
  std::optional<uint64_t> disk_free;        // where the store is
  std::optional<uint64_t> disk_free_files;  // where their number is fixed
  uint64_t disk_reserve = 0;
  bool counts_users = false;  // the jobs of each user
  uint64_t connections_max = 0;
  bool draining = false;
  bool ready = true;
};

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

std::string MetricsText(const ServiceFigures& figures);

}  // namespace delayd

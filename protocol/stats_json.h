// protocol/stats_json.h — queues, counters and health as JSON, in both directions.
//
// Errors:  kInvalidArgument naming the member; unknown members are skipped, so that a newer daemon
// can say more.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace delayd::protocol {

struct QueueCounts {
  std::string name;
  uint64_t scheduled = 0;
  uint64_t ready = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
  uint64_t damaged = 0;  // of the ready ones: their records cannot be read
  bool paused = false;
  std::optional<Millis> pause_left;  // set for a timed pause
  uint32_t concurrency = 0;          // the cap on leased jobs; 0: none
  uint32_t max_jobs = 0;             // the quota; 0: none
  std::string rate;                  // "100/s"; empty: none
  uint32_t burst = 0;                // jobs that the rate lets out at once
  // Since the start of the daemon.
  uint64_t enqueued = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;

  // Ready jobs that a worker can get.
  uint64_t sound() const { return ready > damaged ? ready - damaged : 0; }
};

std::string QueueToJson(const QueueCounts& queue);
StatusOr<QueueCounts> ParseQueue(std::string_view json);

struct QueuePage {
  std::vector<QueueCounts> queues;
  std::string next_cursor;  // empty: this is the last page
};

// {"queues": [...], "next_cursor": "..."}
std::string QueuesToJson(const std::vector<QueueCounts>& queues, std::string_view next_cursor = {});
StatusOr<QueuePage> ParseQueues(std::string_view json);

// GET /v1/stats: one member per figure, in the order given. What is not a count, such as "next_due"
// and "version", is text.
struct Stat {
  std::string name;
  std::variant<uint64_t, std::string> value;
};

std::string StatsToJson(const std::vector<Stat>& stats);
StatusOr<std::vector<Stat>> ParseStats(std::string_view json);

// Whether to refuse new jobs; an empty body means yes.
std::string DrainRequestToJson(bool on);
StatusOr<bool> ParseDrainRequest(std::string_view json);

// GET /healthz and /readyz: {"status": "ok", "version": "0.1.0"}, and when something is wrong
// {..., "reasons": [{"code": "commit_stuck", "detail": "..."}]}.
struct Health {
  struct Reason {
    std::string code;
    std::string detail;
  };

  std::string status;
  std::string version;
  std::vector<Reason> reasons{};

  bool well() const { return !status.starts_with("not "); }

  // "disk_full: ...; clock_suspect: ...".
  std::string Why() const;
};

std::string HealthToJson(const Health& health);
StatusOr<Health> ParseHealth(std::string_view json);

}  // namespace delayd::protocol

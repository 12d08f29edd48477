// tests/storm/client.h — one client of a storm: a producer and a worker in one, who does
// everything that can be done, remembers what must not work any more, and writes it all down.
//
// Errors:  a daemon that is away is waited for. Anything that the protocol has no place for (an
//          answer that cannot be read) is a failed check: the storm ends.
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/job.h"
#include "protocol/client.h"
#include "tests/storm/history_log.h"

namespace delayd::storm {

struct ClientOptions {
  std::string server;
  std::string history;
  uint64_t proc = 1;
  uint64_t seed = 1;
};

class StormClient {
 public:
  StormClient(const ClientOptions& options, std::function<bool()> stopping);

  void Run();

  // From the next step on: no new jobs, and every job handed out is acked.
  void Drain() { draining_ = true; }

 private:
  struct Held {
    std::string token;
    JobId id{};
  };

  struct Mine {
    JobId id{};
    JobSpec spec;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  bool Chance(uint64_t percent) { return Below(100) < percent; }

  void Step();
  JobSpec NewSpec(bool keyed);
  void EnqueueNew();
  void EnqueueAgain();
  void Enqueue(const std::vector<JobSpec>& specs);
  void Lease();
  void EndOne();
  void LeaseOp(const std::string& op, const Held& held, std::optional<Millis> time);
  void UseOldLease();
  void Cancel();
  void Reschedule();
  void Show();
  std::optional<Mine> PickMine();
  std::string TargetOf(const Mine& mine);

  // Sends, and writes down the end of `request` unless it is an answer with jobs in it.
  std::optional<protocol::HttpResponse> Call(uint64_t request,
                                             std::string_view method,
                                             const std::string& target,
                                             const std::string& content_type,
                                             const std::string& body);
  void WaitForDaemon();

  const ClientOptions options_;
  const std::function<bool()> stopping_;
  std::mt19937_64 random_;
  HistoryLog history_;
  std::unique_ptr<protocol::Client> client_;
  bool draining_ = false;
  uint64_t next_label_ = 1;
  std::vector<Held> held_;
  std::vector<Held> old_;
  std::vector<Mine> mine_;
  std::vector<std::vector<JobSpec>> unanswered_;  // with keys: to be sent again
};

}  // namespace delayd::storm

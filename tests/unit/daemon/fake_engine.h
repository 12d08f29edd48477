// tests/unit/daemon/fake_engine.h — an engine that does as the test says and remembers what it was
// asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "daemon/engine/engine.h"

namespace delayd {

// Each enqueue and each job given back goes into a batch, and its reply waits until that is
// committed; a lease waits until it is abandoned, unless job_ready; GetStats is answered at once.
class FakeEngine final : public engine::Engine {
 public:
  struct Asked {
    engine::RequestId request;
    engine::Command command;
    Now now;
    int turn = 0;
  };

  FakeEngine();
  ~FakeEngine() override;

  void Execute(engine::RequestId request, engine::Command command, const Now& now) override;
  bool Advance(const Now& now) override;

  std::optional<Micros> UntilNextEvent(const Now&) const override { return until_next_event; }

  bool IsAwaited() const override { return is_awaited; }

  std::optional<engine::SealedBatch> Seal(const Now&) override;
  void Durable(uint64_t sequence) override;
  void Committed(uint64_t sequence) override;
  std::vector<engine::Reply> TakeReplies() override;
  void RefuseEnqueues(Status why) override;

  const Status& enqueue_refusal() const override { return refusal; }

  Status CheckBacklog() const override { return backlog; }

  size_t uncommitted_bytes() const override { return gathered_.size() + in_flight_.size(); }

  bool has_own_work_enough() const override { return uncommitted_bytes() >= own_work_max; }

  const Status& fatal() const override { return fatal_status; }

  std::vector<Status> TakeIncidents() override { return {}; }

  bool draining() const override { return drains; }

  engine::StatsView stats() const override;
  engine::EngineFigures Figures(size_t queues_max) const override;

  std::vector<Asked> asked;
  bool drains = false;
  Status stats_status;         // what GetStats is answered with
  std::atomic<int> turns = 0;  // that have ended
  std::vector<Now> advanced;   // in each turn
  std::vector<engine::RequestId> abandoned;
  std::vector<size_t> batch_sizes;
  uint64_t sealed = 0;
  uint64_t committed = 0;
  Status fatal_status;
  Status refusal;
  Status backlog;
  std::atomic<size_t> payload_bytes = 0;  // in each batch
  bool job_ready = false;
  size_t own_work_max = SIZE_MAX;
  std::optional<Micros> until_next_event;
  bool is_awaited = false;
  std::function<void()> on_execute;
  std::function<void()> on_committed;

 private:
  void Release(uint64_t sequence);

  std::vector<engine::Reply> gathered_;
  std::map<uint64_t, std::vector<engine::Reply>> in_flight_;
  std::vector<engine::Reply> replies_;
};

}  // namespace delayd

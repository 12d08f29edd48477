// tests/unit/daemon/fake_engine.h — an engine that does as the test says and remembers what it was
// asked.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/engine/engine.h"

namespace delayd {

// Each enqueue goes into a batch, and its reply waits until that is committed; a lease waits until
// it is abandoned, unless job_ready; GetStats is answered at once.
class FakeEngine final : public engine::Engine {
 public:
  struct Asked {
    engine::RequestId request;
    engine::Command command;
    Now now;
    int turn = 0;
  };

  void Execute(engine::RequestId request, engine::Command command, const Now& now) override {
    engine::Reply reply;
    reply.request = request;
    if (std::holds_alternative<engine::Enqueue>(command)) {
      reply.body = engine::Enqueued{{{{.id = JobId{request}, .queue = "q"}, false}}};
      gathered_.push_back(std::move(reply));
    } else if (std::holds_alternative<engine::GetStats>(command)) {
      reply.status = stats_status;
      reply.body = engine::StatsView{};
      replies_.push_back(std::move(reply));
    } else if (std::holds_alternative<engine::Lease>(command) && job_ready) {
      reply.body = engine::Leased{{{.id = JobId{7}, .queue = "q"}}};
      replies_.push_back(std::move(reply));
    } else if (const auto* abandon = std::get_if<engine::Abandon>(&command)) {
      abandoned.push_back(abandon->waiting);
    } else if (const auto* end = std::get_if<engine::EndWait>(&command)) {
      abandoned.push_back(end->waiting);
      reply.request = end->waiting;
      reply.body = engine::Leased{};
      replies_.push_back(std::move(reply));
    }
    asked.push_back({request, std::move(command), now, turns});
    if (on_execute) {
      on_execute();
    }
  }

  bool Advance(const Now& now) override {
    advanced.push_back(now);
    ++turns;
    return false;
  }

  std::optional<Micros> UntilNextEvent(const Now&) const override { return until_next_event; }

  bool IsAwaited() const override { return is_awaited; }

  std::optional<engine::SealedBatch> Seal(const Now&) override {
    if (gathered_.empty()) {
      return std::nullopt;
    }
    const uint64_t sequence = ++sealed;
    batch_sizes.push_back(gathered_.size());
    for (engine::Reply& reply : gathered_) {
      reply.sequence = sequence;
    }
    in_flight_[sequence] = std::exchange(gathered_, {});
    auto batch = std::make_shared<storage::Batch>();
    batch->Put(storage::Table::kMeta, "batch", "x");
    return engine::SealedBatch{sequence, std::move(batch)};
  }

  void Durable(uint64_t sequence) override { Release(sequence); }

  void Committed(uint64_t sequence) override {
    Release(sequence);
    committed = sequence;
    if (on_committed) {
      on_committed();
    }
  }

  std::vector<engine::Reply> TakeReplies() override { return std::exchange(replies_, {}); }

  void RefuseEnqueues(Status why) override { refusal = std::move(why); }

  const Status& enqueue_refusal() const override { return refusal; }

  size_t uncommitted_bytes() const override { return gathered_.size() + in_flight_.size(); }

  const Status& fatal() const override { return fatal_status; }

  std::vector<Status> TakeIncidents() override { return {}; }

  bool draining() const override { return drains; }

  engine::StatsView stats() const override { return {.draining = drains}; }

  engine::EngineFigures Figures(size_t) const override { return {}; }

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
  bool job_ready = false;
  std::optional<Micros> until_next_event;
  bool is_awaited = false;
  std::function<void()> on_execute;
  std::function<void()> on_committed;

 private:
  void Release(uint64_t sequence) {
    for (engine::Reply& reply : in_flight_[sequence]) {
      replies_.push_back(std::move(reply));
    }
    in_flight_.erase(sequence);
  }

  std::vector<engine::Reply> gathered_;
  std::map<uint64_t, std::vector<engine::Reply>> in_flight_;
  std::vector<engine::Reply> replies_;
};

}  // namespace delayd

#include "tests/unit/daemon/fake_engine.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace delayd {

FakeEngine::FakeEngine() = default;

FakeEngine::~FakeEngine() = default;

void FakeEngine::Execute(engine::RequestId request, engine::Command command, const Now& now) {
  engine::Reply reply;
  reply.request = request;
  if (std::holds_alternative<engine::Enqueue>(command)) {
    reply.body = engine::Enqueued{{{{.id = JobId{request}, .queue = "q"}, false}}};
    gathered_.push_back(std::move(reply));
  } else if (std::holds_alternative<engine::GiveBack>(command)) {
    gathered_.push_back(std::move(reply));
  } else if (std::holds_alternative<engine::GetStats>(command)) {
    reply.status = stats_status;
    reply.body = engine::StatsView{};
    replies_.push_back(std::move(reply));
  } else if (std::holds_alternative<engine::Lease>(command) && job_ready) {
    reply.body =
        engine::Leased{{{.id = JobId{7}, .queue = "q", .lease_token = LeaseToken{JobId{7}, 1, 1}}}};
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

bool FakeEngine::Advance(const Now& now) {
  advanced.push_back(now);
  ++turns;
  return false;
}

std::optional<engine::SealedBatch> FakeEngine::Seal(const Now&) {
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
  batch->PutLarge(storage::Table::kBig, "payload", std::string(payload_bytes, 'x'));
  return engine::SealedBatch{sequence, std::move(batch)};
}

void FakeEngine::Durable(uint64_t sequence) {
  Release(sequence);
}

void FakeEngine::Committed(uint64_t sequence) {
  Release(sequence);
  committed = sequence;
  if (on_committed) {
    on_committed();
  }
}

std::vector<engine::Reply> FakeEngine::TakeReplies() {
  return std::exchange(replies_, {});
}

void FakeEngine::RefuseEnqueues(Status why) {
  refusal = std::move(why);
}

engine::StatsView FakeEngine::stats() const {
  return {.draining = drains};
}

engine::EngineFigures FakeEngine::Figures(size_t /*queues_max*/) const {
  return {};
}

void FakeEngine::Release(uint64_t sequence) {
  for (engine::Reply& reply : in_flight_[sequence]) {
    replies_.push_back(std::move(reply));
  }
  in_flight_.erase(sequence);
}

}  // namespace delayd

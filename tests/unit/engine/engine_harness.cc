#include "tests/unit/engine/engine_harness.h"

#include <utility>
#include <variant>

#include <gtest/gtest.h>

namespace delayd::engine {

EngineHarness::EngineHarness(EngineOptions options) : options_(std::move(options)) {
  options_.boot_id = kBootId;
  Start();
}

void EngineHarness::Restart(uint64_t boot_id) {
  options_.boot_id = boot_id;
  replies_.clear();
  engine_.reset();
  Start();
}

void EngineHarness::RestartWith(EngineOptions options) {
  options_ = std::move(options);
  Restart();
}

RequestId EngineHarness::Send(Command command) {
  const RequestId request = next_request_++;
  engine_->Execute(request, std::move(command), clock_.Sample());
  Collect();
  return request;
}

void EngineHarness::Turn() {
  do {
    while (engine_->Advance(clock_.Sample())) {
    }
  } while (CommitAll());
}

bool EngineHarness::CommitOne() {
  const auto sealed = engine_->Seal(clock_.Sample());
  if (!sealed) {
    return false;
  }
  EXPECT_TRUE(store_.Commit(*sealed->batch).ok());
  engine_->Committed(sealed->sequence);
  Collect();
  return true;
}

bool EngineHarness::CommitAll() {
  const bool any = CommitOne();
  while (CommitOne()) {
  }
  Collect();
  return any;
}

bool EngineHarness::HasReply(RequestId request) {
  Collect();
  return replies_.contains(request);
}

Reply EngineHarness::Take(RequestId request) {
  Collect();
  const auto found = replies_.find(request);
  if (found == replies_.end()) {
    ADD_FAILURE() << "request " << request << " has no reply";
    return {};
  }
  Reply reply = std::move(found->second);
  replies_.erase(found);
  return reply;
}

Reply EngineHarness::Call(Command command) {
  const RequestId request = Send(std::move(command));
  Turn();
  return Take(request);
}

JobView EngineHarness::EnqueueOk(JobSpec spec) {
  Reply reply = Call(Enqueue{{std::move(spec)}});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  if (!reply.status.ok()) {
    return {};
  }
  return std::get<Enqueued>(reply.body).items.at(0).job;
}

std::vector<JobView> EngineHarness::LeaseNow(uint32_t count, std::string queue) {
  Reply reply = Call(Lease{.queues = {std::move(queue)}, .count = count});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return reply.status.ok() ? std::get<Leased>(reply.body).jobs : std::vector<JobView>();
}

JobView EngineHarness::ShowOk(JobId id) {
  Reply reply = Call(Show{id});
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
  return reply.status.ok() ? *std::get<Indirect<JobView>>(reply.body) : JobView();
}

std::string_view EngineHarness::ReasonOf(Command command) {
  return Call(std::move(command)).status.reason();
}

void EngineHarness::Wait(Micros by) {
  clock_.Advance(by);
  Turn();
}

std::optional<Millis> EngineHarness::UntilNextEvent() const {
  const std::optional<Micros> until = engine_->UntilNextEvent(clock_.Sample());
  return until ? std::optional(std::chrono::ceil<Millis>(*until)) : std::nullopt;
}

void EngineHarness::Start() {
  auto loaded = Engine::Load(options_, store_, clock_.Sample());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  engine_ = std::move(loaded).value();
  CommitAll();
}

void EngineHarness::Collect() {
  for (Reply& reply : engine_->TakeReplies()) {
    const RequestId request = reply.request;
    EXPECT_TRUE(replies_.emplace(request, std::move(reply)).second) << "request answered twice";
  }
}

JobSpec In(Millis delay, std::string payload) {
  return {.due = DueAfter{delay}, .payload = std::move(payload)};
}

JobSpec Keyed(std::string key, Millis delay, std::string payload) {
  return {.due = DueAfter{delay}, .payload = std::move(payload), .key = std::move(key)};
}

JobSpec ForQueue(std::string queue, Millis delay, std::string payload) {
  JobSpec spec = In(delay, std::move(payload));
  spec.queue = std::move(queue);
  return spec;
}

void AckAll(EngineHarness* harness, const std::vector<JobView>& jobs) {
  for (const JobView& job : jobs) {
    EXPECT_TRUE(harness->Call(Ack{*job.lease_token}).status.ok());
  }
}

size_t WorkOff(EngineHarness* harness, const std::string& queue) {
  size_t count = 0;
  for (auto leased = harness->LeaseNow(5, queue); !leased.empty();
       leased = harness->LeaseNow(5, queue)) {
    count += leased.size();
    AckAll(harness, leased);
  }
  return count;
}

}  // namespace delayd::engine

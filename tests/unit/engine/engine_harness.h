// An engine on the plain store, with a clock that is moved by hand and commits that happen when
// told.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "daemon/engine/engine.h"
#include "storage/memory_job_store.h"

namespace delayd::engine {

inline constexpr uint64_t kBootId = 77;

class EngineHarness {
 public:
  explicit EngineHarness(EngineOptions options = {}) : options_(options) {
    options_.boot_id = kBootId;
    Start();
  }

  // What a kill -9 and a start do: everything that was not committed is gone.
  void Restart(uint64_t boot_id = kBootId) {
    options_.boot_id = boot_id;
    replies_.clear();
    engine_.reset();
    Start();
  }

  RequestId Send(Command command) {
    const RequestId request = next_request_++;
    engine_->Execute(request, std::move(command), clock_.Sample());
    Collect();
    return request;
  }

  // Turns: what is due, then a commit of everything, until there is nothing left to do.
  void Turn() {
    do {
      while (engine_->Advance(clock_.Sample())) {
      }
    } while (CommitAll());
  }

  bool CommitOne() {
    const auto sealed = engine_->Seal(clock_.Sample());
    if (!sealed) {
      return false;
    }
    EXPECT_TRUE(store_.Commit(*sealed->batch).ok());
    engine_->Committed(sealed->sequence);
    Collect();
    return true;
  }

  // Whether there was anything.
  bool CommitAll() {
    const bool any = CommitOne();
    while (CommitOne()) {
    }
    Collect();
    return any;
  }

  bool HasReply(RequestId request) {
    Collect();
    return replies_.contains(request);
  }

  Reply Take(RequestId request) {
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

  // Sends, lets a turn pass, and gives the reply.
  Reply Call(Command command) {
    const RequestId request = Send(std::move(command));
    Turn();
    return Take(request);
  }

  JobView EnqueueOk(JobSpec spec) {
    Reply reply = Call(Enqueue{{std::move(spec)}});
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    if (!reply.status.ok()) {
      return {};
    }
    return std::get<Enqueued>(reply.body).items.at(0).job;
  }

  std::vector<JobView> LeaseNow(uint32_t count = 1, std::string queue = "default") {
    Reply reply = Call(Lease{.queues = {std::move(queue)}, .count = count});
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    return reply.status.ok() ? std::get<Leased>(reply.body).jobs : std::vector<JobView>();
  }

  JobView ShowOk(JobId id) {
    Reply reply = Call(Show{id});
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    return reply.status.ok() ? *std::get<Indirect<JobView>>(reply.body) : JobView();
  }

  std::string_view ReasonOf(Command command) { return Call(std::move(command)).status.reason(); }

  void Wait(Micros by) {
    clock_.Advance(by);
    Turn();
  }

  // In whole milliseconds, as most tests let time pass.
  std::optional<Millis> UntilNextEvent() const {
    const std::optional<Micros> until = engine_->UntilNextEvent(clock_.Sample());
    return until ? std::optional(std::chrono::ceil<Millis>(*until)) : std::nullopt;
  }

  Engine& engine() { return *engine_; }

  storage::MemoryJobStore& store() { return store_; }

  SimulatedClock& clock() { return clock_; }

  Now now() const { return clock_.Sample(); }

 private:
  void Start() {
    auto loaded = Engine::Load(options_, store_, clock_.Sample());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    engine_ = std::move(loaded).value();
    CommitAll();
  }

  void Collect() {
    for (Reply& reply : engine_->TakeReplies()) {
      const RequestId request = reply.request;
      EXPECT_TRUE(replies_.emplace(request, std::move(reply)).second) << "request answered twice";
    }
  }

  EngineOptions options_;
  storage::MemoryJobStore store_;
  SimulatedClock clock_{
      Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)}};
  std::unique_ptr<Engine> engine_;
  std::map<RequestId, Reply> replies_;
  RequestId next_request_ = 1;
};

inline JobSpec In(Millis delay, std::string payload = "p") {
  return {.due = DueAfter{delay}, .payload = std::move(payload)};
}

inline JobSpec Keyed(std::string key, Millis delay = Millis(0), std::string payload = "p") {
  return {.due = DueAfter{delay}, .payload = std::move(payload), .key = std::move(key)};
}

}  // namespace delayd::engine

// An engine on the plain store, with a clock that is moved by hand and commits that happen when
// told. Its functions are compiled once: a Command has many alternatives.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "daemon/engine/engine.h"
#include "storage/memory_job_store.h"

namespace delayd::engine {

inline constexpr uint64_t kBootId = 77;
inline constexpr Millis kHour{3'600'000};

// Memory for ten jobs, of the next minute.
inline const EngineOptions kTenJobs{.horizon = Millis(60'000), .memory_jobs_max = 10};

class EngineHarness {
 public:
  explicit EngineHarness(EngineOptions options = {});

  // What a kill -9 and a start do: everything that was not committed is gone.
  void Restart(uint64_t boot_id = kBootId);
  // The same, with other options.
  void RestartWith(EngineOptions options);

  RequestId Send(Command command);

  // Turns: what is due, then a commit of everything, until there is nothing left to do.
  void Turn();
  bool CommitOne();
  // Whether there was anything.
  bool CommitAll();

  bool HasReply(RequestId request);
  Reply Take(RequestId request);

  // Sends, lets a turn pass, and gives the reply.
  Reply Call(Command command);
  JobView EnqueueOk(JobSpec spec);
  std::vector<JobView> LeaseNow(uint32_t count = 1, std::string queue = "default");
  JobView ShowOk(JobId id);
  std::string_view ReasonOf(Command command);

  void Wait(Micros by);

  // The same before the next turn.
  void Pass(Micros by) { clock_.Advance(by); }

  // In whole milliseconds, as most tests let time pass.
  std::optional<Millis> UntilNextEvent() const;

  Engine& engine() { return *engine_; }

  storage::MemoryJobStore& store() { return store_; }

  SimulatedClock& clock() { return clock_; }

  Now now() const { return clock_.Sample(); }

 private:
  void Start();
  void Collect();

  EngineOptions options_;
  storage::MemoryJobStore store_;
  SimulatedClock clock_{
      Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)}};
  std::unique_ptr<Engine> engine_;
  std::map<RequestId, Reply> replies_;
  RequestId next_request_ = 1;
};

JobSpec In(Millis delay, std::string payload = "p");

JobSpec Keyed(std::string key, Millis delay = Millis(0), std::string payload = "p");

JobSpec ForQueue(std::string queue, Millis delay, std::string payload = "p");

void AckAll(EngineHarness* harness, const std::vector<JobView>& jobs);

// Works everything that is ready, and tells how much it was.
size_t WorkOff(EngineHarness* harness, const std::string& queue = "default");

}  // namespace delayd::engine

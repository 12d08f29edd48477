// fixed_work: the same work every time, on the wheel, the engine, the records, the memtables' skip
// list and the JSON of jobs, so that scripts/count-instructions can count what it takes.
// Instructions do not depend on who else uses the machine.
//
//   fixed_work               the names of the cases
//   fixed_work CASE          does it once; only delayd_fixed_work_measured is counted
//   fixed_work --compiler    what the counts depend on
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/coding.h"
#include "daemon/engine/engine.h"
#include "protocol/job_json.h"
#include "storage/key_head.h"
#include "storage/keys.h"
#include "storage/memory_job_store.h"
#include "storage/record.h"
#include "storage/skip_list.h"
#include "wheel/timing_wheel.h"

// By this name the counting is turned on and off.
extern "C" __attribute__((noinline)) void delayd_fixed_work_measured(
    const std::function<void()>& work) {
  work();
}

namespace delayd {
namespace {

void Measure(const std::function<void()>& work) {
  delayd_fixed_work_measured(work);
}

// Numbers that look random and are the same everywhere (splitmix64).
class Numbers {
 public:
  uint64_t Below(uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % bound;
  }

 private:
  uint64_t state_ = 1;
};

// ---- The wheel ----

constexpr uint64_t kTimers = 50'000;
constexpr wheel::Tick kHour = 3'600'000;

std::vector<wheel::TimerHandle> AddTimers(wheel::TimingWheel* wheel) {
  Numbers numbers;
  std::vector<wheel::TimerHandle> handles;
  handles.reserve(kTimers);
  for (uint64_t id = 0; id < kTimers; ++id) {
    handles.push_back(wheel->Add(1 + numbers.Below(kHour), id));
  }
  return handles;
}

void WheelAdd() {
  wheel::TimingWheel wheel;
  Measure([&] { AddTimers(&wheel); });
}

void WheelCancel() {
  wheel::TimingWheel wheel;
  const std::vector<wheel::TimerHandle> handles = AddTimers(&wheel);
  Measure([&] {
    for (const wheel::TimerHandle handle : handles) {
      DELAYD_CHECK(wheel.Cancel(handle));
    }
  });
}

void WheelMove() {
  wheel::TimingWheel wheel;
  const std::vector<wheel::TimerHandle> handles = AddTimers(&wheel);
  Numbers numbers;
  Measure([&] {
    for (const wheel::TimerHandle handle : handles) {
      DELAYD_CHECK(wheel.Move(handle, 1 + numbers.Below(kHour)));
    }
  });
}

void WheelPop() {
  wheel::TimingWheel wheel;
  AddTimers(&wheel);
  Measure([&] {
    std::array<wheel::Expired, 256> due;
    uint64_t popped = 0;
    for (wheel::Tick now = 0; popped < kTimers; now += 1000) {
      for (size_t count = due.size(); count == due.size();) {
        count = wheel.PopDue(now, due);
        popped += count;
      }
    }
  });
}

// ---- The engine, on the plain store ----

constexpr uint64_t kJobs = 2'000;
constexpr uint64_t kBatch = 50;  // commands to a commit

class FixedEngine {
 public:
  explicit FixedEngine(engine::EngineOptions options = {}) {
    options.boot_id = 7;
    auto engine = engine::Engine::Load(options, store_, clock_.Sample());
    DELAYD_CHECK(engine.ok());
    engine_ = std::move(engine).value();
    Commit();
  }

  void Execute(engine::Command command) {
    engine_->Execute(++request_, std::move(command), clock_.Sample());
    if (request_ % kBatch == 0) {
      Commit();
    }
  }

  void Commit() {
    while (engine_->Advance(clock_.Sample())) {
    }
    while (auto sealed = engine_->Seal(clock_.Sample())) {
      DELAYD_CHECK(store_.Commit(*sealed->batch).ok());
      engine_->Committed(sealed->sequence);
    }
    for (engine::Reply& reply : engine_->TakeReplies()) {
      DELAYD_CHECK(reply.status.ok());
      replies_.push_back(std::move(reply));
    }
  }

  // Into one queue after the other, of so many.
  void EnqueueAll(uint64_t queues = 1) {
    Numbers numbers;
    for (uint64_t i = 0; i < kJobs; ++i) {
      JobSpec spec;
      if (queues > 1) {
        spec.queue = QueueName(i % queues);
      }
      spec.due = DueAfter{Millis(static_cast<int64_t>(1 + numbers.Below(kHour / 10)))};
      spec.payload = std::string(256, 'x');
      engine::Enqueue enqueue{.brief = true};
      enqueue.jobs.push_back(std::move(spec));
      Execute(std::move(enqueue));
    }
    Commit();
  }

  static std::string QueueName(uint64_t number) { return "queue-" + std::to_string(number); }

  void PassHour() { clock_.Advance(Millis(kHour)); }

  std::vector<engine::Reply> TakeReplies() { return std::exchange(replies_, {}); }

 private:
  storage::MemoryJobStore store_;
  SimulatedClock clock_{
      Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)}};
  std::unique_ptr<engine::Engine> engine_;
  engine::RequestId request_ = 0;
  std::vector<engine::Reply> replies_;
};

constexpr uint64_t kQueues = 1'000;
constexpr uint64_t kNamedQueues = 100'000;

void EngineEnqueue() {
  FixedEngine engine;
  Measure([&] { engine.EnqueueAll(); });
  DELAYD_CHECK(engine.TakeReplies().size() == kJobs);
}

void CancelAll(FixedEngine& engine) {
  engine.EnqueueAll();
  const std::vector<engine::Reply> replies = engine.TakeReplies();
  Measure([&] {
    for (const engine::Reply& reply : replies) {
      engine.Execute(
          engine::Cancel{.job = std::get<engine::EnqueuedIds>(reply.body).items.front().id,
                         .if_tag = {},
                         .brief = true});
    }
    engine.Commit();
  });
  DELAYD_CHECK(engine.TakeReplies().size() == kJobs);
}

void EngineCancel() {
  FixedEngine engine;
  CancelAll(engine);
}

// What is kept of each job is for the longest time that any queue of the file asks for.
void EngineCancelNamedQueues() {
  std::map<std::string, engine::QueueSettings> queues;
  for (uint64_t i = 0; i < kNamedQueues; ++i) {
    queues[FixedEngine::QueueName(i)].concurrency = 4;
  }
  queues["default"].history_retention = Millis(kHour);
  FixedEngine engine({.queues = std::move(queues)});
  CancelAll(engine);
}

// One request that names them all.
void EngineLeaseManyQueues() {
  FixedEngine engine;
  engine.EnqueueAll(kQueues);
  engine.TakeReplies();
  engine.PassHour();
  engine.Commit();
  engine::Lease lease;
  for (uint64_t i = 0; i < kQueues; ++i) {
    lease.queues.push_back(FixedEngine::QueueName(i));
  }
  lease.count = limits::kLeaseCountMax;
  Measure([&] { engine.Execute(std::move(lease)); });
  engine.Commit();
  DELAYD_CHECK(std::get<engine::Leased>(engine.TakeReplies().front().body).jobs.size() ==
               limits::kLeaseCountMax);
}

// Each has more jobs that are due than memory has room for.
void EngineLaggingQueues() {
  FixedEngine engine({.memory_jobs_max = kJobs / 2});
  engine.EnqueueAll(kJobs / 4);
  engine.TakeReplies();
  engine.PassHour();
  engine.Commit();
  Measure([&] {
    for (uint64_t i = 0; i < kJobs; ++i) {
      engine.Commit();
    }
  });
}

void EngineLeaseAck() {
  FixedEngine engine;
  engine.EnqueueAll();
  engine.TakeReplies();
  engine.PassHour();
  uint64_t acked = 0;
  Measure([&] {
    engine.Commit();
    while (acked < kJobs) {
      engine::Lease lease;
      lease.queues = {"default"};
      lease.count = kBatch;
      engine.Execute(std::move(lease));
      engine.Commit();
      for (const engine::Reply& reply : engine.TakeReplies()) {
        if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
          for (const JobView& job : leased->jobs) {
            engine.Execute(engine::Ack{.token = *job.lease_token, .brief = true});
            ++acked;
          }
        }
      }
    }
    engine.Commit();
  });
}

// ---- The records ----

constexpr uint64_t kRecords = 20'000;

storage::JobRecord Record() {
  storage::JobRecord record;
  record.queue = QueueId{3};
  record.due = WallFromMillis(1'800'000'600'000);
  record.boot_id = 7;
  record.boot_due = BootFromMillis(5'600'000);
  record.created = WallFromMillis(1'800'000'000'000);
  record.priority = 1024;
  record.max_attempts = 25;
  record.lease = Millis(60'000);
  record.fingerprint = 0x1234567890abcdef;
  record.key = "order:1001";
  record.payload = std::string(256, 'x');
  record.payload_bytes = record.payload.size();
  return record;
}

std::string RecordKey(uint64_t id) {
  return storage::TimerKey(WallFromMillis(1'800'000'600'000), JobId{id});
}

void RecordEncode() {
  const storage::JobRecord record = Record();
  const std::string key = RecordKey(42);
  size_t bytes = 0;
  Measure([&] {
    std::string out;
    for (uint64_t i = 0; i < kRecords; ++i) {
      out.clear();
      storage::AppendJobRecord(&out, storage::Table::kTimers, key, record);
      bytes += out.size();
    }
  });
  DELAYD_CHECK(bytes > kRecords * 256);
}

void RecordDecode() {
  const std::string key = RecordKey(42);
  const std::string value = storage::EncodeJobRecord(storage::Table::kTimers, key, Record());
  uint64_t bytes = 0;
  Measure([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      const auto record = storage::DecodeJobRecord(storage::Table::kTimers, key, value);
      DELAYD_CHECK(record.ok());
      bytes += record->payload.size();
    }
  });
  DELAYD_CHECK(bytes == kRecords * 256);
}

// Client keys that begin alike have one head, and are told apart by what is behind it alone.
void SkipListInsertAlike() {
  constexpr uint64_t kEntries = 8192;
  constexpr uint64_t kStep = 5003;  // odd: each number once, in no order
  std::vector<std::string> entries;
  for (uint64_t i = 0; i < kEntries; ++i) {
    std::string key = "customer-order-";
    AppendU32(&key, static_cast<uint32_t>(i * kStep % kEntries));
    AppendU64(&key, i);  // the tag
    entries.push_back(static_cast<char>(key.size()) + key);
  }
  storage::SkipList list(storage::HeadKind::kFirstBytes);
  const std::vector<storage::KeyHead> heads(
      storage::SkipList::kExpectedMax,
      storage::HeadOf(storage::HeadKind::kFirstBytes, entries.front().substr(1)));
  Measure([&] {
    for (const std::string& entry : entries) {
      if (!list.expects()) {
        list.Expect(heads);
      }
      DELAYD_CHECK(list.Insert(entry.c_str()));
    }
  });
}

// ---- JSON ----

void JsonJobs() {
  JobView job;
  job.id = JobId{1'234'567};
  job.queue = "orders";
  job.key = "order:1001";
  job.state = JobState::kLeased;
  job.due = WallFromMillis(1'800'000'600'000);
  job.created = WallFromMillis(1'800'000'000'000);
  job.lease = Millis(60'000);
  job.payload = std::string(256, 'x');
  job.payload_bytes = job.payload->size();
  job.lease_token = LeaseToken{.job = job.id, .epoch = 7, .sequence = 99'000};
  job.lease_expires = job.due + job.lease;
  job.lateness = Millis(2);
  const protocol::JobPage page{.jobs = std::vector<JobView>(kJobs, job), .next_cursor = {}};
  Measure([&] { DELAYD_CHECK(protocol::JobPageToJson(page).size() > kJobs * 256); });
}

void JsonSpecs() {
  const std::string spec = R"({"queue":"orders","key":"order:1001","delay":"30m","payload":")" +
                           std::string(256, 'x') + "\"}";
  Measure([&] {
    for (uint64_t i = 0; i < kJobs; ++i) {
      DELAYD_CHECK(protocol::ParseJobSpec(spec, limits::kPayloadBytesDefaultMax).ok());
    }
  });
}

constexpr auto kCases = std::to_array<std::pair<std::string_view, void (*)()>>({
    {"wheel/add", WheelAdd},
    {"wheel/cancel", WheelCancel},
    {"wheel/move", WheelMove},
    {"wheel/pop", WheelPop},
    {"engine/enqueue", EngineEnqueue},
    {"engine/cancel", EngineCancel},
    {"engine/cancel_named_queues", EngineCancelNamedQueues},
    {"engine/lagging_queues", EngineLaggingQueues},
    {"engine/lease_ack", EngineLeaseAck},
    {"engine/lease_many_queues", EngineLeaseManyQueues},
    {"record/encode", RecordEncode},
    {"record/decode", RecordDecode},
    {"skip_list/insert_alike", SkipListInsertAlike},
    {"json/jobs", JsonJobs},
    {"json/specs", JsonSpecs},
});

void PrintCompiler() {
#if defined(__clang__)
  std::printf("clang %d", __clang_major__);
#else
  std::printf("gcc %d", __GNUC__);
#endif
#if defined(__x86_64__)
  std::printf(" x86_64\n");
#elif defined(__aarch64__)
  std::printf(" aarch64\n");
#else
  std::printf(" other\n");
#endif
}

int Main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (wanted == "--compiler") {
    PrintCompiler();
    return 0;
  }
  for (const auto& [name, run] : kCases) {
    if (wanted.empty()) {
      std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
    } else if (wanted == name) {
      run();
      return 0;
    }
  }
  return wanted.empty() ? 0 : 2;
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  return delayd::Main(argc, argv);
}

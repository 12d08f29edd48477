// What the store costs, each figure beside its floor in the same run: the disk of a shared machine
// varies by a factor of ten within the hour, so only the ratios mean anything.
//
//   storage_bench commit [jobs]   durable batches of 128 jobs: raw fdatasync, bare RocksDB, the
//   store storage_bench load [jobs]     bytes on disk, open after a kill, scan of the heads,
//   lookups storage_bench layout [jobs]   a by_queue index beside timers, against timers sorted by
//   queue
//
// The data goes to $TMPDIR (default /tmp): point it to the disk that is meant.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/check.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "storage/rocks_options.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kJobsPerBatch = 128;
constexpr uint32_t kQueues = 100;
constexpr int64_t kEpochMs = 1'700'000'000'000;
constexpr int64_t kSpreadMs = 3'600'000;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// 256 bytes, two thirds of them hexadecimal digits, as an order event is.
std::string Payload(std::mt19937_64* random) {
  std::string text = R"({"event":"cancel_unpaid_order","order_id":)";
  text += std::to_string((*random)() % 1'000'000'000) + R"(,"customer":"c-)";
  text += std::to_string((*random)() % 1'000'000) + R"(","token":")";
  while (text.size() < 253) {
    text += "0123456789abcdef"[(*random)() % 16];
  }
  return text + "\"}";
}

// Random due times over an hour: the worst case for the memtable.
struct Job {
  JobRecord record;
  WallTime due;
};

std::vector<Job> MakeJobs(uint64_t count) {
  std::mt19937_64 random(42);
  std::vector<Job> jobs(count);
  for (uint64_t i = 0; i < count; ++i) {
    JobRecord& record = jobs[i].record;
    record.id = JobId{i + 1};
    record.queue = QueueId{static_cast<uint32_t>(1 + random() % kQueues)};
    record.due = WallFromMillis(kEpochMs + static_cast<int64_t>(random() % kSpreadMs));
    record.boot_id = 0x0123456789abcdef;
    record.boot_due = BootFromMillis(ToMillis(record.due) - kEpochMs);
    record.created = WallFromMillis(kEpochMs);
    record.priority = 1024;
    record.max_attempts = 25;
    record.lease = Millis(60'000);
    record.payload = Payload(&random);
    jobs[i].due = record.due;
  }
  return jobs;
}

std::string IndexOf(std::string_view key, const Job& job) {
  return EncodeIndexRecord(
      key, {.place = IndexRecord::Place::kTimers, .queue = job.record.queue, .at = job.due});
}

// What an enqueue writes.
void PutJob(const Job& job, Batch* batch) {
  static thread_local std::string value;
  value.clear();
  const FixedKey timer = TimerKey(job.due, job.record.id);
  AppendJobRecord(&value, Table::kTimers, timer, job.record);
  batch->Put(Table::kTimers, timer, value);
  const FixedKey index = IndexKey(job.record.id);
  batch->Put(Table::kIndex, index, IndexOf(index, job));
  batch->Put(Table::kByQueue, ByQueueKey(job.record.queue, job.due, job.record.id), {});
}

Batch MakeBatch(const std::vector<Job>& jobs, uint64_t first, uint64_t number) {
  Batch batch;
  for (uint64_t i = first; i < std::min<uint64_t>(jobs.size(), first + kJobsPerBatch); ++i) {
    PutJob(jobs[i], &batch);
  }
  batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
  return batch;
}

struct Timing {
  double seconds = 0;
  std::vector<double> millis;  // of each commit

  void Add(double elapsed) {
    seconds += elapsed;
    millis.push_back(elapsed * 1e3);
  }

  double Quantile(double q) {
    std::ranges::sort(millis);
    return millis[static_cast<size_t>(q * static_cast<double>(millis.size() - 1))];
  }
};

// Calls `commit` with the first job of every batch.
Timing Time(uint64_t jobs, const std::function<void(uint64_t first, uint64_t number)>& commit) {
  Timing timing;
  for (uint64_t first = 0, number = 1; first < jobs; first += kJobsPerBatch, ++number) {
    const auto before = SteadyClock::now();
    commit(first, number);
    timing.Add(SecondsSince(before));
  }
  return timing;
}

// A RocksDB as the store opens it, without the store.
class BareRocks {
 public:
  explicit BareRocks(const std::string& path) {
    rocksdb::DBOptions options = MakeDbOptions({});
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(options, path, MakeColumnFamilies({}), &families_, &db);
    DELAYD_CHECK(status.ok());
    db_.reset(db);
  }

  ~BareRocks() {
    for (auto* family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
  }

  BareRocks(const BareRocks&) = delete;
  BareRocks& operator=(const BareRocks&) = delete;

  void Write(const Batch& batch) {
    batch_.Clear();
    for (size_t i = 0; i < batch.size(); ++i) {
      const Batch::Op op = batch.op(i);
      const std::string_view value = op.value.empty() ? std::string_view("") : op.value;
      batch_
          .Put(families_[static_cast<size_t>(op.table)],
               {op.key.data(), op.key.size()},
               {value.data(), value.size()})
          .PermitUncheckedError();
    }
    rocksdb::WriteOptions options;
    options.sync = true;
    const rocksdb::Status status = db_->Write(options, &batch_);
    DELAYD_CHECK(status.ok());
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  rocksdb::WriteBatch batch_;
};

Timing RunRaw(const std::vector<Job>& jobs, const std::vector<Batch>& batches) {
  const test::TempDir dir;
  const int fd = ::open(dir.Sub("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  DELAYD_CHECK(fd >= 0);
  Timing timing = Time(jobs.size(), [&](uint64_t, uint64_t number) {
    const std::string bytes(batches[number - 1].bytes(), 'x');
    DELAYD_CHECK(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    DELAYD_CHECK(::fdatasync(fd) == 0);
  });
  ::close(fd);
  return timing;
}

// Batch by batch in turn, so that both meet the same disk. In the store's time is the encoding.
std::pair<Timing, Timing> RunBareAndStore(const std::vector<Job>& jobs,
                                          const std::vector<Batch>& batches) {
  const test::TempDir dir;
  BareRocks rocks(dir.Sub("bare"));
  auto store = OpenRocksJobStore({.path = dir.Sub("store")});
  DELAYD_CHECK(store.ok());
  Timing bare;
  Timing ours;
  for (uint64_t number = 1; number <= batches.size(); ++number) {
    auto start = SteadyClock::now();
    rocks.Write(batches[number - 1]);
    bare.Add(SecondsSince(start));
    start = SteadyClock::now();
    DELAYD_CHECK((*store)->Commit(MakeBatch(jobs, (number - 1) * kJobsPerBatch, number)).ok());
    ours.Add(SecondsSince(start));
  }
  return {std::move(bare), std::move(ours)};
}

void Print(const char* name, Timing timing, uint64_t jobs) {
  std::printf("%-22s %9.0f jobs/s   p50 %7.3f ms   p99 %7.3f ms\n",
              name,
              static_cast<double>(jobs) / timing.seconds,
              timing.Quantile(0.5),
              timing.Quantile(0.99));
  std::fflush(stdout);
}

void BenchCommit(uint64_t count) {
  const std::vector<Job> jobs = MakeJobs(count);
  std::vector<Batch> batches;
  for (uint64_t first = 0, number = 1; first < count; first += kJobsPerBatch, ++number) {
    batches.push_back(MakeBatch(jobs, first, number));
  }
  std::printf("durable commits of %llu jobs, %zu bytes each\n",
              static_cast<unsigned long long>(kJobsPerBatch),  // NOLINT(google-runtime-int)
              batches[0].bytes());
  std::vector<double> ratios;
  for (int round = 1; round <= 5; ++round) {
    std::printf("round %d\n", round);
    Print("  raw fdatasync", RunRaw(jobs, batches), count);
    const auto [bare, store] = RunBareAndStore(jobs, batches);
    Print("  bare RocksDB", bare, count);
    Print("  the store", store, count);
    ratios.push_back(bare.seconds / store.seconds);
  }
  std::ranges::sort(ratios);
  std::printf("the store reaches %.0f %% of bare RocksDB (median of rounds; %.0f to %.0f %%)\n",
              ratios[ratios.size() / 2] * 100,
              ratios.front() * 100,
              ratios.back() * 100);
}

uint64_t BytesBelow(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  return bytes;
}

void BenchLoad(uint64_t count) {
  const std::vector<Job> jobs = MakeJobs(count);
  const test::TempDir dir;
  {
    auto store = OpenRocksJobStore({.path = dir.Sub("data")});
    DELAYD_CHECK(store.ok());
    for (uint64_t first = 0, number = 1; first < count; first += kJobsPerBatch, ++number) {
      DELAYD_CHECK((*store)->Commit(MakeBatch(jobs, first, number)).ok());
    }
  }
  auto start = SteadyClock::now();
  auto store = OpenRocksJobStore({.path = dir.Sub("data")});
  DELAYD_CHECK(store.ok());
  std::printf("open after a kill       %.3f s\n", SecondsSince(start));

  start = SteadyClock::now();
  uint64_t rows = 0;
  const Status scanned = (*store)->Scan(
      Table::kTimers,
      TimerKey(jobs[0].due - Millis(kSpreadMs), JobId{0}),
      {},
      [&](auto key, auto value) { return ++rows > 0 && DecodeTimerHead(key, value).ok(); });
  DELAYD_CHECK(scanned.ok());
  std::printf("scan of the heads       %.2f M timers/s (%llu)\n",
              static_cast<double>(rows) / SecondsSince(start) / 1e6,
              static_cast<unsigned long long>(rows));  // NOLINT(google-runtime-int)

  std::mt19937_64 random(7);
  start = SteadyClock::now();
  constexpr int kLookups = 20'000;
  for (int i = 0; i < kLookups; ++i) {
    const Job& job = jobs[random() % count];
    std::string value;
    DELAYD_CHECK((*store)->Get(Table::kIndex, IndexKey(job.record.id), &value).ok());
    const auto place = DecodeIndexRecord(IndexKey(job.record.id), value);
    const std::string key = TimerKey(place->at, job.record.id);
    DELAYD_CHECK((*store)->Get(Table::kTimers, key, &value).ok());
    DELAYD_CHECK(DecodeJobRecord(Table::kTimers, key, value).ok());
  }
  std::printf("job by id               %.1f us\n", SecondsSince(start) / kLookups * 1e6);

  DELAYD_CHECK((*store)->Close().ok());
  std::printf("disk after a clean stop %.0f bytes a pending job\n",
              static_cast<double>(BytesBelow(dir.Sub("data"))) / static_cast<double>(count));
}

// Layout A is the store's. Layout B keeps the record under (queue, due, id) and a thin global order
// (due, id) -> queue; it borrows the tables' column families: kByQueue for records, kTimers for the
// order.
Batch MakeBatchB(const std::vector<Job>& jobs, uint64_t first) {
  Batch batch;
  for (uint64_t i = first; i < std::min<uint64_t>(jobs.size(), first + kJobsPerBatch); ++i) {
    const JobRecord& record = jobs[i].record;
    const std::string order = TimerKey(jobs[i].due, record.id);
    std::string queue = ByQueueKey(record.queue, jobs[i].due, record.id);
    batch.Put(Table::kByQueue, queue, EncodeJobRecord(Table::kTimers, order, record));
    queue.resize(4);
    batch.Put(Table::kTimers, order, queue);
    batch.Put(Table::kIndex, IndexKey(record.id), IndexOf(IndexKey(record.id), jobs[i]));
  }
  return batch;
}

void MeasureLayout(const char* name, const std::vector<Job>& jobs, bool by_queue_index) {
  const test::TempDir dir;
  auto opened = OpenRocksJobStore({.path = dir.Sub("data")});
  DELAYD_CHECK(opened.ok());
  JobStore& store = **opened;
  Print(name,
        Time(jobs.size(),
             [&](uint64_t first, uint64_t number) {
               DELAYD_CHECK(store
                                .Commit(by_queue_index ? MakeBatch(jobs, first, number)
                                                       : MakeBatchB(jobs, first))
                                .ok());
             }),
        jobs.size());
  DELAYD_CHECK(store.Close().ok());
  opened = OpenRocksJobStore({.path = dir.Sub("data")});
  DELAYD_CHECK(opened.ok());
  const JobStore& reader = **opened;

  auto start = SteadyClock::now();
  uint64_t rows = 0;
  DELAYD_CHECK(reader
                   .Scan(Table::kTimers,
                         TimerKey(WallFromMillis(0), JobId{0}),
                         {},
                         [&](auto, auto) { return ++rows > 0; })
                   .ok());
  const double scan = SecondsSince(start);

  // list --queue --limit 100, of every queue.
  start = SteadyClock::now();
  uint64_t bytes = 0;
  for (uint32_t queue = 1; queue <= kQueues; ++queue) {
    int listed = 0;
    DELAYD_CHECK(reader
                     .Scan(Table::kByQueue,
                           ByQueueKey(QueueId{queue}, WallFromMillis(0), JobId{0}),
                           ByQueueKey(QueueId{queue + 1}, WallFromMillis(0), JobId{0}),
                           [&](auto key, auto value) {
                             std::string record(value);
                             if (by_queue_index) {
                               DELAYD_CHECK(
                                   reader.Get(Table::kTimers, key.substr(4), &record).ok());
                             }
                             bytes += record.size();
                             return ++listed < 100;
                           })
                     .ok());
  }
  const double list = SecondsSince(start) / kQueues;

  // The record of each job in the order they fall due, as a worker gets them.
  std::vector<const Job*> order;
  for (const Job& job : jobs) {
    order.push_back(&job);
  }
  std::ranges::sort(order, {}, [](const Job* job) { return job->due; });
  start = SteadyClock::now();
  const size_t fired = std::min<size_t>(order.size(), 100'000);
  std::string record;
  for (size_t i = 0; i < fired; ++i) {
    const JobRecord& job = order[i]->record;
    const std::string key = by_queue_index ? TimerKey(order[i]->due, job.id)
                                           : ByQueueKey(job.queue, order[i]->due, job.id);
    DELAYD_CHECK(reader.Get(by_queue_index ? Table::kTimers : Table::kByQueue, key, &record).ok());
  }
  std::printf(
      "  scan of all timers %.2f M/s, list of 100 of a queue %.2f ms, record at hand-out %.1f us, "
      "%.0f bytes/job\n",
      static_cast<double>(rows) / scan / 1e6,
      list * 1e3,
      SecondsSince(start) / static_cast<double>(fired) * 1e6,
      static_cast<double>(BytesBelow(dir.Sub("data"))) / static_cast<double>(jobs.size()));
}

void BenchLayout(uint64_t count) {
  const std::vector<Job> jobs = MakeJobs(count);
  for (int round = 1; round <= 2; ++round) {
    MeasureLayout("A: by_queue index", jobs, true);
    MeasureLayout("B: sorted by queue", jobs, false);
  }
}

}  // namespace
}  // namespace delayd::storage

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "commit";
  const uint64_t jobs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
  if (what == "commit") {
    delayd::storage::BenchCommit(jobs);
  } else if (what == "load") {
    delayd::storage::BenchLoad(jobs);
  } else if (what == "layout") {
    delayd::storage::BenchLayout(jobs);
  } else {
    std::fprintf(stderr, "usage: storage_bench commit|load|layout [jobs]\n");
    return 2;
  }
  return 0;
}

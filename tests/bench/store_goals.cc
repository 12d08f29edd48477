// store_goals: what the engine on its store costs at the sizes that were promised, each figure with
// its goal, and the floors of the same minutes. scripts/bench-storage writes it into
// docs/benchmarks.md.
//
//   store_goals floors           durable commits: raw fdatasync, bare appends (storage_bench commit
//                                holds the store against bare RocksDB)
//   store_goals far [jobs]       pending jobs over a day: start after kill -9, memory, disk
//   store_goals pile [jobs]      ready jobs of one queue that nobody works: the same, and the due
//                                job of another queue
//   store_goals near [jobs]      jobs within the horizon: memory of each, waiting and ready
//   store_goals steady [acks]    jobs that live 30 minutes, in virtual time: disk, head reads
//   store_goals cancel [jobs]    far jobs cancelled at once: head reads and commits before and
//   after
//
// Prints one Markdown row a figure. The data goes to $TMPDIR: point it to the disk that is meant.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "daemon/engine/engine.h"
#include "protocol/client.h"
#include "storage/keys.h"
#include "storage/record.h"
#include "storage/rocks_job_store.h"
#include "tests/support/daemon.h"
#include "tests/support/temp_dir.h"

namespace delayd {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kQueues = 100;
constexpr uint64_t kBatchJobs = 1000;
constexpr Millis kHour{3'600'000};

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Of this thread: what a crowd on the machine stretches less than the time on the wall.
double ThreadCpuMillis() {
  timespec used{};
  DELAYD_CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
  return double(used.tv_sec) * 1e3 + double(used.tv_nsec) / 1e6;
}

void Row(const std::string& what, const std::string& measured, const std::string& goal, bool ok) {
  std::printf("| %s | %s | %s | %s |\n",
              what.c_str(),
              measured.c_str(),
              goal.c_str(),
              goal.empty() ? "" : (ok ? "reached" : "**not reached**"));
  std::fflush(stdout);
}

std::string Text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

class Samples {
 public:
  void Add(double millis) { values_.push_back(millis); }

  double Quantile(double q) {
    std::ranges::sort(values_);
    return values_.empty() ? 0 : values_[static_cast<size_t>(q * double(values_.size() - 1))];
  }

 private:
  std::vector<double> values_;
};

uint64_t BytesBelow(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    std::error_code gone;  // files come and go while RocksDB works
    const uint64_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    bytes += gone ? 0 : size;
  }
  return bytes;
}

uint64_t ResidentBytes(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  status >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What a process has used of the processors so far, as a busy machine cannot stretch it.
double CpuSeconds(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  for (int field = 1; field <= 13; ++field) {
    stat >> word;
  }
  double user = 0;
  double system = 0;
  stat >> user >> system;
  return (user + system) / double(::sysconf(_SC_CLK_TCK));
}

// 256 bytes, two thirds of them hexadecimal digits, as an order event is.
std::string Payload(std::mt19937_64* random) {
  std::string text = R"({"event":"cancel_unpaid_order","order_id":)";
  text += std::to_string((*random)() % 1'000'000'000) + R"(,"customer":"c-)";
  text += std::to_string((*random)() % 1'000'000) + R"(","token":")";
  while (text.size() < 253) {
    uint64_t bits = (*random)();
    for (int i = 0; i < 16 && text.size() < 253; ++i, bits >>= 4) {
      text += "0123456789abcdef"[bits & 15];
    }
  }
  return text + "\"}";
}

// The engine on RocksDB with a clock of its own; commits happen when told, and are real.
class Service {
 public:
  Service(std::string path, Now start) : path_(std::move(path)), clock_(start) { Open(); }

  void Open() {
    auto store = storage::OpenRocksJobStore({.path = path_});
    if (!store.ok()) {
      std::fprintf(stderr, "%s\n", store.status().message().c_str());
      std::exit(1);
    }
    store_ = std::move(store).value();
  }

  void Load() {
    auto engine = engine::Engine::Load({.boot_id = 7}, *store_, clock_.Sample());
    if (!engine.ok()) {
      std::fprintf(stderr, "%s\n", engine.status().message().c_str());
      std::exit(1);
    }
    engine_ = std::move(engine).value();
    Commit();
  }

  void Close() {
    engine_.reset();
    DELAYD_CHECK(store_->Close().ok());
    store_.reset();
  }

  std::vector<engine::Reply> Do(engine::Command command) {
    engine_->Execute(++request_, std::move(command), clock_.Sample());
    Commit();
    return engine_->TakeReplies();
  }

  // Without a commit of its own.
  void Begin(engine::Command command) {
    engine_->Execute(++request_, std::move(command), clock_.Sample());
  }

  void Commit() {
    while (const auto sealed = engine_->Seal(clock_.Sample())) {
      const auto start = SteadyClock::now();
      DELAYD_CHECK(store_->Commit(*sealed->batch).ok());
      commits.Add(SecondsSince(start) * 1e3);
      engine_->Committed(sealed->sequence);
    }
  }

  // The longest turn, in time of the processor.
  double Advance() {
    double longest = 0;
    for (bool more = true; more;) {
      const double start = ThreadCpuMillis();
      more = engine_->Advance(clock_.Sample());
      longest = std::max(longest, ThreadCpuMillis() - start);
    }
    return longest;
  }

  // The first pending row, from where every scan begins; in time of the processor.
  double HeadRead() {
    const double start = ThreadCpuMillis();
    std::string value;
    const Status got = store_->Get(storage::Table::kMeta, storage::kLowWaterMarkKey, &value);
    uint64_t mark = 0;
    if (got.ok()) {
      mark = *storage::DecodeNumber(storage::kLowWaterMarkKey, value);
    }
    const std::string from =
        storage::TimerKey(WallFromMillis(static_cast<int64_t>(mark)), JobId{0});
    DELAYD_CHECK(
        store_->Scan(storage::Table::kTimers, from, {}, [](auto, auto) { return false; }).ok());
    return ThreadCpuMillis() - start;
  }

  void Enqueue(uint64_t count,
               const std::function<Millis()>& delay,
               const std::string& queue = {}) {
    engine::Enqueue command;
    for (uint64_t i = 0; i < count; ++i) {
      JobSpec spec;
      spec.queue = queue.empty() ? "q" + std::to_string(random_() % kQueues) : queue;
      spec.due = DueAfter{delay()};
      spec.payload = Payload(&random_);
      command.jobs.push_back(std::move(spec));
    }
    Begin(std::move(command));
  }

  engine::Engine& engine() { return *engine_; }

  SimulatedClock& clock() { return clock_; }

  std::mt19937_64& random() { return random_; }

  const std::string& path() const { return path_; }

  Samples commits;

 private:
  std::string path_;
  SimulatedClock clock_;
  std::unique_ptr<storage::JobStore> store_;
  std::unique_ptr<engine::Engine> engine_;
  std::mt19937_64 random_{42};
  engine::RequestId request_ = 0;
};

void Fill(Service* service, uint64_t jobs, Millis from, Millis to, const std::string& queue = {}) {
  const auto delay = [&] {
    return from + Millis(static_cast<int64_t>(service->random()() %
                                              static_cast<uint64_t>((to - from).count())));
  };
  for (uint64_t done = 0; done < jobs; done += kBatchJobs) {
    service->Enqueue(std::min(kBatchJobs, jobs - done), delay, queue);
    service->Commit();
    service->engine().TakeReplies();
  }
}

constexpr const char* kOneJobQueue = "first";

void Floors() {
  const test::TempDir dir;
  const int fd = ::open(dir.Sub("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  DELAYD_CHECK(fd >= 0);
  for (const size_t bytes : {size_t{512}, size_t{4096}, size_t{400'000}}) {
    const std::string record(bytes, 'x');
    Samples samples;
    for (int i = 0; i < 500; ++i) {
      const auto start = SteadyClock::now();
      DELAYD_CHECK(::write(fd, record.data(), bytes) == static_cast<ssize_t>(bytes));
      DELAYD_CHECK(::fdatasync(fd) == 0);
      samples.Add(SecondsSince(start) * 1e3);
    }
    Row("floor: append of " + std::to_string(bytes) + " bytes and fdatasync",
        Text("p50 %.2f ms", samples.Quantile(0.5)) + Text(", p99 %.2f ms", samples.Quantile(0.99)),
        "",
        true);
  }
  ::close(fd);
}

// In a process of its own, which ends as after kill -9: nothing is flushed.
[[noreturn]] void FillAndDie(std::string_view what, const std::string& path, uint64_t jobs) {
  Service service(path, SystemClock().Sample());
  service.Load();
  if (what == "pile") {
    Fill(&service, jobs, Millis(0), Millis(1), "idle");
  } else {
    Fill(&service, jobs, Millis(60'000), 24 * kHour);
  }
  Fill(&service, 1, Millis(0), Millis(1), kOneJobQueue);
  std::raise(SIGKILL);
  std::abort();
}

// From the request to the answer, by the one due job of a queue of its own.
double FirstHandOut(const test::Daemon& daemon) {
  auto client = protocol::Client::Create("unix:" + daemon.socket());
  DELAYD_CHECK(client.ok());
  const auto start = SteadyClock::now();
  const auto answer = (*client)->Call("POST",
                                      std::string("/v1/queues/") + kOneJobQueue + "/lease",
                                      "application/json",
                                      R"({"count": 1, "wait": "60s"})",
                                      Millis(90'000));
  DELAYD_CHECK(answer.ok() && answer->body.find("\"lease_token\"") != std::string::npos);
  return SecondsSince(start);
}

// `what`: "far" or "pile", as FillAndDie knows it.
void Starts(const char* program, const char* what, const std::string& name, uint64_t jobs) {
  test::Daemon daemon;
  auto start = SteadyClock::now();
  const test::ProcessResult filled =
      test::RunProcess({.argv = {program, "fill", std::to_string(jobs), daemon.data_dir(), what}},
                       std::chrono::hours(1));
  DELAYD_CHECK(filled.signal == SIGKILL);
  Row(name + "filled, durable", Text("%.0f jobs/s", double(jobs) / SecondsSince(start)), "", true);
  for (const char* again : {"after kill -9", "after another kill -9"}) {
    start = SteadyClock::now();
    DELAYD_CHECK(daemon.Start());
    const double ready = SecondsSince(start);
    Row(name + "READY " + again,
        Text("%.2f s", ready) + Text(" (%.2f s of processor)", CpuSeconds(daemon.pid())),
        "at most 2 s",
        ready <= 2);
    const double first = FirstHandOut(daemon);
    Row(name + "then the first due job of a small queue",
        Text("%.3f s", first),
        "at most 1 s",
        first <= 1);
    const auto resident = double(ResidentBytes(std::to_string(daemon.pid())));
    // A pile fills the budget as soon as there is time for it.
    Row(name + "resident then",
        Text("%.0f MB", resident / 1e6),
        std::string_view(what) == "far" ? "at most 200 MB" : "",
        resident <= 200e6);
    daemon.Kill();
  }
  const double disk = double(BytesBelow(daemon.data_dir())) / double(jobs);
  Row(name + "disk", Text("%.0f B a job", disk), "at most 310 B", disk <= 310);
}

void Near(uint64_t jobs) {
  const test::TempDir dir;
  const Now now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)};
  {
    Service service(dir.Sub("data"), now);
    service.Load();
    Fill(&service, jobs, Millis(60'000), Millis(500'000));
    service.Close();
  }
  Service service(dir.Sub("data"), now);
  ::malloc_trim(0);
  const uint64_t before = ResidentBytes("self");
  service.Load();
  service.Advance();  // what a start leaves for later
  ::malloc_trim(0);
  const double each = double(ResidentBytes("self") - before) / double(jobs);
  const std::string name = Text("%.0f M jobs within the horizon: memory", double(jobs) / 1e6);
  Row(name, Text("%.1f B a job", each), "at most 64 B", each <= 64);
  service.clock().Advance(Millis(600'000));
  service.Advance();
  service.Commit();
  ::malloc_trim(0);
  const double ready = double(ResidentBytes("self") - before) / double(jobs);
  Row(name + " when all are ready", Text("%.1f B a job", ready), "", true);
}

// The answers to acks may come in the same turn.
std::vector<JobView> LeasedIn(const std::vector<engine::Reply>& replies) {
  for (const engine::Reply& reply : replies) {
    if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
      return leased->jobs;
    }
  }
  return {};
}

void Steady(uint64_t acks) {
  constexpr uint64_t kPerSecond = 500;
  const test::TempDir dir;
  Service service(dir.Sub("data"),
                  {.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)});
  service.Load();
  std::vector<std::string> queues;
  for (int i = 0; i < kQueues; ++i) {
    queues.push_back("q" + std::to_string(i));
  }
  Samples heads;
  Samples leases;
  double worst = 0;
  uint64_t live = 0;
  uint64_t acked = 0;
  // The rows of one job, as they are put: record, index, by_queue.
  constexpr double kLiveBytes = 256 + 62 + 16 + 8 + 18 + 20;
  const auto start = SteadyClock::now();
  for (uint64_t second = 0; acked < acks; ++second) {
    service.Enqueue(kPerSecond, [] { return kHour / 2; });
    live += kPerSecond;
    service.Commit();
    service.engine().TakeReplies();
    service.clock().Advance(Millis(1000));
    service.Advance();
    while (true) {
      const auto begin = SteadyClock::now();
      const auto replies = service.Do(engine::Lease{.queues = queues, .count = 100});
      const std::vector<JobView> jobs = LeasedIn(replies);
      if (jobs.empty()) {
        break;
      }
      leases.Add(SecondsSince(begin) * 1e3 / double(jobs.size()));
      for (const JobView& job : jobs) {
        service.Begin(engine::Ack{*job.lease_token});
      }
      acked += jobs.size();
      live -= jobs.size();
    }
    service.Commit();
    service.engine().TakeReplies();
    heads.Add(service.HeadRead());
    if (second > 2000 && second % 100 == 0) {
      worst = std::max(worst, double(BytesBelow(service.path())) / (double(live) * kLiveBytes));
    }
  }
  const std::string name = Text("%.1f M acks, jobs live 30 min: ", double(acked) / 1e6);
  Row(name + "in and out, durable",
      Text("%.0f jobs/s", double(acked) / SecondsSince(start)),
      "",
      true);
  Row(name + "disk against live data, worst",
      Text("%.2f times", worst),
      "below 2",
      worst > 0 && worst < 2);
  Row(name + "head read (processor), p99",
      Text("%.3f ms", heads.Quantile(0.99)) + Text(" (p50 %.3f)", heads.Quantile(0.5)),
      "below 1 ms",
      heads.Quantile(0.99) < 1);
  Row(name + "hand-out of a job, record read, p99",
      Text("%.3f ms", leases.Quantile(0.99)),
      "",
      true);
  service.Close();
}

struct Latency {
  Samples heads;
  Samples commits;
};

Latency Measure(Service* service) {
  Latency latency;
  service->commits = {};
  for (int i = 0; i < 300; ++i) {
    service->Enqueue(10, [] { return 48 * kHour; });
    service->Commit();
    service->engine().TakeReplies();
    latency.heads.Add(service->HeadRead());
  }
  latency.commits = std::exchange(service->commits, {});
  return latency;
}

void CancelMany(uint64_t jobs) {
  const test::TempDir dir;
  Service service(dir.Sub("data"),
                  {.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)});
  service.Load();
  Fill(&service, jobs, kHour, 24 * kHour);
  const std::string name = Text("cancel of %.1f M far jobs: ", double(jobs) / 1e6);
  Latency before = Measure(&service);
  const auto start = SteadyClock::now();
  for (uint64_t id = 1; id <= jobs; ++id) {
    service.Begin(engine::Cancel{JobId{id}});
    if (id % kBatchJobs == 0) {
      service.Commit();
      service.engine().TakeReplies();
    }
  }
  service.Commit();
  service.engine().TakeReplies();
  Row(name + "rate, durable", Text("%.0f jobs/s", double(jobs) / SecondsSince(start)), "", true);
  Latency at_once = Measure(&service);
  Row(name + "head read (processor) p99 at once, while the last are swept up",
      Text("%.3f ms", at_once.heads.Quantile(0.99)),
      "",
      true);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Latency after = Measure(&service);
  const auto row = [&](const char* what, Samples* old_ones, Samples* new_ones) {
    const double was = old_ones->Quantile(0.99);
    const double is = new_ones->Quantile(0.99);
    // The disk alone varies by more than two.
    Row(name + what,
        Text("%.3f ms before", was) + Text(", %.3f ms after", is),
        "at most 1 ms or twice",
        is <= std::max(1.0, 2 * was));
  };
  row("head read (processor) p99, two seconds later", &before.heads, &after.heads);
  row("commit p99, at once", &before.commits, &at_once.commits);
  // The window passes over what was cancelled: the longest that a turn is held up by it.
  double longest = 0;
  for (int step = 0; step < 24 * 12; ++step) {
    service.clock().Advance(Millis(300'000));
    longest = std::max(longest, service.Advance());
  }
  Row(name + "longest turn (processor) while a day passes over them",
      Text("%.1f ms", longest),
      "at most 50 ms",
      longest <= 50);
  service.Close();
}

}  // namespace
}  // namespace delayd

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto jobs = [&](uint64_t otherwise) {
    return argc > 2 ? std::strtoull(argv[2], nullptr, 10) : otherwise;
  };
  if (what == "floors") {
    delayd::Floors();
  } else if (what == "far") {
    delayd::Starts(argv[0],
                   "far",
                   delayd::Text("%.0f M jobs over 24 h: ", double(jobs(10'000'000)) / 1e6),
                   jobs(10'000'000));
  } else if (what == "pile") {
    delayd::Starts(argv[0],
                   "pile",
                   delayd::Text("%.0f M ready jobs of one queue: ", double(jobs(10'000'000)) / 1e6),
                   jobs(10'000'000));
  } else if (what == "fill" && argc == 5) {
    delayd::FillAndDie(argv[4], argv[3], jobs(0));
  } else if (what == "near") {
    delayd::Near(jobs(1'000'000));
  } else if (what == "steady") {
    delayd::Steady(jobs(5'000'000));
  } else if (what == "cancel") {
    delayd::CancelMany(jobs(1'000'000));
  } else {
    std::fprintf(stderr, "usage: store_goals floors | far|pile|near|steady|cancel [count]\n");
    return 2;
  }
  return 0;
}

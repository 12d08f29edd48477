#include "tests/storm/rot_store.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/check.h"
#include "storage/rocks_job_store.h"
#include "storage/verify.h"
#include "tests/storm/history_log.h"

namespace delayd::storm {
namespace {

constexpr Millis kHour{3'600'000};

Now BuildNow() {
  return {.wall = WallFromMillis(1'600'000'000'000), .boot = BootFromMillis(5'000'000)};
}

engine::EngineOptions Options() {
  engine::EngineOptions options;
  options.boot_id = 77;
  options.defaults.key_retention = kHour * 24 * 3650;
  return options;
}

storage::RocksJobStoreOptions StoreOptions(const std::string& directory) {
  return {.path = directory,
          .block_cache_bytes = uint64_t{1} << 20,
          .wal_bytes_max = uint64_t{96} << 10};
}

class Builder {
 public:
  Builder(storage::JobStore* store, uint64_t seed, RotJobs* jobs)
      : engine_(store, BuildNow()), random_(seed), jobs_(jobs) {
    DELAYD_CHECK(engine_.Start().ok());
  }

  void Enqueue(int batches) {
    for (int batch = 0; batch < batches; ++batch) {
      engine::Enqueue command;
      for (uint64_t n = 1 + random_() % 6; n > 0; --n) {
        command.jobs.push_back(Spec());
      }
      const std::vector<JobSpec> specs = command.jobs;
      const auto reply = engine_.Call(std::move(command));
      DELAYD_CHECK(reply && reply->status.ok());
      const auto& items = std::get<engine::Enqueued>(reply->body).items;
      for (size_t i = 0; i < items.size(); ++i) {
        (*jobs_)[items[i].job.id] = {.spec = specs[i]};
      }
    }
  }

  // Some come to an end, each in its way.
  void Work() {
    engine_.Advance(kHour);
    const auto leased = engine_.Call(engine::Lease{.queues = {"a", "b", "c"}, .count = 60});
    DELAYD_CHECK(leased && leased->status.ok());
    int n = 0;
    for (const JobView& job : std::get<engine::Leased>(leased->body).jobs) {
      const LeaseToken token = *job.lease_token;
      switch (n++ % 4) {
        case 0:
          DELAYD_CHECK(engine_.Call(engine::Ack{token})->status.ok());
          jobs_->at(job.id).state = JobState::kFinished;
          break;
        case 1:
          DELAYD_CHECK(engine_.Call(engine::Bury{token, "buried"})->status.ok());
          jobs_->at(job.id).state = JobState::kDead;
          break;
        case 2:
          DELAYD_CHECK(engine_.Call(engine::Nack{token, kHour, "not now"})->status.ok());
          break;
        default:
          break;  // leased when the daemon goes
      }
    }
    for (auto& [id, job] : *jobs_) {
      if (job.state == JobState::kScheduled && random_() % 12 == 0) {
        const auto reply = engine_.Call(engine::Cancel{id});
        job.state = reply->status.ok() ? JobState::kFinished : job.state;
      }
    }
  }

 private:
  JobSpec Spec() {
    const uint64_t dice = random_() % 100;
    const uint64_t size = dice < 70   ? random_() % 300
                          : dice < 95 ? random_() % 6000
                                      : random_() % 40'000;
    const std::string label = "rot-" + std::to_string(++labels_) + "-" +
                              std::to_string(random_() % 1000) + "-" + std::to_string(size);
    JobSpec spec{.queue = std::string(1, static_cast<char>('a' + random_() % 3)),
                 .payload = MakePayload(label)};
    const Millis delay(static_cast<int64_t>(random_() % 7'200'000));
    spec.due =
        random_() % 3 == 0 ? DueSpec(DueAt{BuildNow().wall + delay}) : DueSpec(DueAfter{delay});
    if (random_() % 2 == 0) {
      spec.key = "key-" + label;
    }
    return spec;
  }

  RotEngine engine_;
  std::mt19937_64 random_;
  RotJobs* jobs_;
  uint64_t labels_ = 0;
};

// "job 42" and not "job 421".
bool Mentions(const std::string& text, JobId id) {
  const std::string name = "job " + std::to_string(ToInt(id));
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') {
      return true;
    }
  }
  return false;
}

class Inspection {
 public:
  Inspection(const std::string& directory, const std::string& file, const RotJobs& jobs)
      : directory_(directory), file_(file), jobs_(jobs) {}

  RotFinding Run() {
    storage::RecoveryReport report;
    auto store = storage::OpenRocksJobStore(StoreOptions(directory_), &report);
    for (const std::string& line : report.Lines()) {
      Say(line);
    }
    if (!store.ok()) {
      Refused(store.status());
      return Result();
    }
    Verify(**store);
    RotEngine engine(store->get(), RotNow());
    if (const Status started = engine.Start(); !started.ok()) {
      Refused(started);
      return Result();
    }
    CheckKeys(&engine);
    Drain(&engine);
    CheckTheRest(&engine);
    for (const Status& incident : engine.TakeIncidents()) {
      Say(std::string(incident.message()));
    }
    if (!engine.fatal().ok()) {
      Refused(engine.fatal());
      return Result();
    }
    Judge();
    return Result();
  }

 private:
  void Say(const std::string& text) { finding_.named.push_back(text); }

  void Violation(const std::string& text) {
    if (finding_.violation.empty()) {
      finding_.violation = text;
    }
  }

  RotFinding Result() {
    finding_.harmless = finding_.violation.empty() && finding_.named.empty();
    return std::move(finding_);
  }

  // It must say what is broken: the file, or a job, a queue, a key.
  void Refused(const Status& status) {
    Say(std::string(status.message()));
    std::string text;  // what the log of the daemon shows
    for (const std::string& line : finding_.named) {
      text += line + "\n";
    }
    // "000044.log" is log number 44 too, and RocksDB may call a table 000044.ldb.
    const size_t digits = std::min(file_.find_first_not_of('0'), file_.size());
    const std::string number = "number: " + file_.substr(digits, file_.find('.') - digits);
    bool named = text.find(file_.substr(0, file_.find('.'))) != std::string::npos ||
                 text.find(number) != std::string::npos;
    for (const char* object :
         {"job ", "queue ", "key ", "batch ", "row ", ".sst", ".log", "MANIFEST-"}) {
      named = named || text.find(object) != std::string::npos;
    }
    if (!named) {
      Violation("refused, and nothing is named: " + text);
    }
  }

  void Verify(const storage::JobReader& store) {
    const auto report = storage::VerifyStore(store);
    if (!report.ok()) {
      return Say(std::string(report.status().message()));
    }
    for (const storage::Disagreement& one : report->disagreements) {
      Say(one.what);
    }
  }

  // The same request again finds the same job.
  void CheckKeys(RotEngine* engine) {
    for (const auto& [id, job] : jobs_) {
      if (job.spec.key.empty()) {
        continue;
      }
      const auto reply = engine->Call(engine::Enqueue{{job.spec}});
      if (!reply) {
        return;
      }
      if (!reply->status.ok()) {
        Say(std::string(reply->status.message()));
        continue;
      }
      const auto& item = std::get<engine::Enqueued>(reply->body).items.at(0);
      if (!item.existed || item.job.id != id) {
        missing_.emplace_back(id, "its key is forgotten");
        strangers_.insert(item.job.id);
      }
    }
  }

  void Drain(RotEngine* engine) {
    for (;;) {
      const auto reply = engine->Call(
          engine::Lease{.queues = {"a", "b", "c"}, .count = 100, .lease = Millis(24 * 3'600'000)});
      if (!reply) {
        return;
      }
      if (!reply->status.ok()) {
        Say(std::string(reply->status.message()));
        return;
      }
      const auto& leased = std::get<engine::Leased>(reply->body).jobs;
      if (leased.empty()) {
        return;
      }
      for (const JobView& job : leased) {
        Got(job, JobState::kScheduled);
      }
    }
  }

  void Got(const JobView& job, JobState state) {
    const std::string name = "job " + std::to_string(ToInt(job.id));
    const auto found = jobs_.find(job.id);
    if (found == jobs_.end()) {
      if (!strangers_.contains(job.id)) {
        Violation(name + " was never enqueued");
      }
      return;
    }
    const RotJob& want = found->second;
    if (job.payload.value_or("") != want.spec.payload || job.queue != want.spec.queue ||
        job.key != want.spec.key) {
      Violation(name + " is given with another payload, queue or key");
    }
    if (want.state != state) {
      missing_.emplace_back(job.id, "it had come to its end and is given again");
    }
    seen_.insert(job.id);
  }

  // The dead ones, and those that were not handed out.
  void CheckTheRest(RotEngine* engine) {
    for (const auto& [id, job] : jobs_) {
      if (seen_.contains(id) || job.state == JobState::kFinished) {
        continue;
      }
      const auto reply = engine->Call(engine::Show{id});
      if (!reply) {
        return;
      }
      if (reply->status.ok() &&
          std::get<Indirect<JobView>>(reply->body)->state == JobState::kDead) {
        Got(*std::get<Indirect<JobView>>(reply->body), JobState::kDead);
        continue;
      }
      if (reply->status.code() == StatusCode::kDataLoss) {
        Say(std::string(reply->status.message()));
      }
      missing_.emplace_back(id, "it is not there");
    }
  }

  // Nothing is missing without a word.
  void Judge() {
    for (const auto& [id, what] : missing_) {
      const bool named = std::ranges::any_of(finding_.named, [&, id = id](const std::string& text) {
        return Mentions(text, id) || text.find(file_) != std::string::npos;
      });
      if (!named) {
        Violation("job " + std::to_string(ToInt(id)) + ": " + what + ", and nobody says so");
      }
    }
  }

  const std::string directory_;
  const std::string file_;
  const RotJobs& jobs_;
  RotFinding finding_;
  std::set<JobId> seen_;
  std::set<JobId> strangers_;
  std::vector<std::pair<JobId, std::string>> missing_;
};

}  // namespace

Status RotEngine::Start() {
  auto loaded = engine::Engine::Load(Options(), *store_, clock_.Sample());
  if (!loaded.ok()) {
    return loaded.status();
  }
  engine_ = std::move(loaded).value();
  Turn();
  return fatal_;
}

void RotEngine::Turn() {
  while (fatal_.ok() && engine_->Advance(clock_.Sample())) {
  }
  while (fatal_.ok()) {
    const auto sealed = engine_->Seal(clock_.Sample());
    if (!sealed) {
      break;
    }
    fatal_ = store_->Commit(*sealed->batch);
    if (fatal_.ok()) {
      engine_->Committed(sealed->sequence);
    }
  }
  if (fatal_.ok()) {
    fatal_ = engine_->fatal();
  }
  for (engine::Reply& reply : engine_->TakeReplies()) {
    replies_.push_back(std::move(reply));
  }
}

std::optional<engine::Reply> RotEngine::Call(engine::Command command) {
  const engine::RequestId request = next_++;
  replies_.clear();
  if (fatal_.ok()) {
    engine_->Execute(request, std::move(command), clock_.Sample());
    Turn();
  }
  for (engine::Reply& reply : replies_) {
    if (reply.request == request) {
      return std::move(reply);
    }
  }
  return std::nullopt;
}

void RotEngine::Advance(Millis by) {
  clock_.Advance(by);
  Turn();
}

Now RotNow() {
  Now now = BuildNow();
  now.wall += kHour * 100;
  now.boot += kHour * 100;
  return now;
}

RotJobs BuildRotStore(const std::string& directory, uint64_t seed, bool in_order) {
  RotJobs jobs;
  auto store = storage::OpenRocksJobStore(StoreOptions(directory));
  DELAYD_CHECK(store.ok());
  Builder builder(store->get(), seed, &jobs);
  builder.Enqueue(25);
  builder.Work();
  builder.Enqueue(20);
  if (in_order) {
    DELAYD_CHECK((*store)->Close().ok());
  }
  return jobs;
}

RotFinding CheckRottenStore(const std::string& directory,
                            const std::string& file,
                            const RotJobs& jobs) {
  return Inspection(directory, file, jobs).Run();
}

}  // namespace delayd::storm

// tests/storm/client.h — what the clients of a storm have in common: each is a producer and a
// worker in one, who does everything that can be done, remembers what must not work any more, and
// writes it all down.
//
// Errors:  a daemon that is away is waited for. Anything that the protocol has no place for (an
//          answer that cannot be read) is a failed check: the storm ends.
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/job.h"
#include "tests/storm/history_log.h"

namespace delayd::storm {

struct ClientOptions {
  std::string server;
  std::string history;
  uint64_t proc = 1;
  uint64_t seed = 1;
};

class Client {
 public:
  Client(ClientOptions options, std::function<bool()> stopping);
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Run();

  // From the next step on: no new jobs, and every job handed out is brought to its end.
  void Drain() { draining_ = true; }

 protected:
  struct Held {
    std::string token;
    JobId id{};
  };

  struct Mine {
    JobId id{};
    JobSpec spec;
  };

  virtual void Connect() = 0;
  // Gives a new job its due time and its attempts.
  virtual void DrawTimes(JobSpec* spec) = 0;
  virtual void Enqueue(const std::vector<JobSpec>& specs) = 0;
  virtual void Lease() = 0;
  virtual void EndOne() = 0;  // of the held ones
  // Draws one of everything that can be done without a lease in hand.
  virtual void DoSomething() = 0;

  // The same again, which must find the job that is there; or other content under its key, which
  // must be refused, or is another job when the first one has finished.
  void EnqueueAgain();

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  bool Chance(uint64_t percent) { return Below(100) < percent; }

  std::optional<Mine> PickMine();
  JobSpec NewSpec(bool keyed);
  // One, or up to nine, all of them with a key or none.
  std::vector<JobSpec> NewSpecs();
  void DropHeld(JobId id);

  // Keeps the last 200.
  template <typename T>
  static void Remember(std::vector<T>* list, T one) {
    constexpr size_t kRemembered = 200;
    list->push_back(std::move(one));
    if (list->size() > kRemembered) {
      list->erase(list->begin());
    }
  }

  static std::string IdEntry(JobId id);
  // As a job that is due at once.
  static std::string KickEntry(JobId id);
  // With DueAfter or DueAt and max_attempts.
  static std::string SpecEntry(const JobSpec& spec);
  static std::string EnqueuedEntry(JobId id, bool existed);

  const ClientOptions options_;
  const std::function<bool()> stopping_;
  std::mt19937_64 random_;
  HistoryLog history_;
  bool draining_ = false;
  std::vector<Held> held_;
  std::vector<Held> old_;
  std::vector<Mine> mine_;
  std::vector<std::vector<JobSpec>> unanswered_;  // with keys: to be sent again

 private:
  void Step();
  // Who, which job, and the size: mostly small, now and then one that is stored apart from its row.
  std::string NewLabel();

  uint64_t next_label_ = 1;
};

}  // namespace delayd::storm

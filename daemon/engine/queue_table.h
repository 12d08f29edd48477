// daemon/engine/queue_table.h — the queues of the shard: ready jobs in order, waiting lease
// requests, exact counts.
//
// Units:   ready jobs come out by priority (smaller first), then by due time, then by id.
// Errors:  a queue id that the store gives twice is kDataLoss.
// Threads: one owner.
// Cost:    O(1) by id or name, O(log n) per ready job.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "daemon/engine/frontier.h"
#include "daemon/engine/job_table.h"
#include "daemon/engine/queue_settings.h"
#include "daemon/engine/rate_bucket.h"
#include "daemon/engine/waiting_line.h"
#include "storage/record.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/timer.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::engine {

struct ReadyJob {
  WallTime key_due;
  JobId id{};
  uint32_t priority = 0;
  Slot slot = 0;

  friend bool operator<(const ReadyJob& a, const ReadyJob& b) {
    return std::tie(a.priority, a.key_due, a.id) < std::tie(b.priority, b.key_due, b.id);
  }
};

// While it lasts the queue hands nothing out.
struct QueuePause {
  storage::QueueRecord::Pause durable;
  BootTime end;                // of a timed one
  wheel::TimerHandle timer{};  // of a timed one
};

struct Queue {
  // As clients are told.
  uint64_t ready_count() const { return ready.size() + damaged; }

  uint64_t scheduled_count() const { return counts.pending - ready_count() - leased; }

  // Than in memory.
  bool has_more_on_disk() const { return counts.pending > held + leased + damaged; }

  QueueId id{};
  std::string name;
  wheel::IndexedPriorityQueue<ReadyJob> ready;
  WaitingLine waiters;
  storage::QueueCounts counts;  // as the store will have them
  uint64_t leased = 0;
  uint64_t urgent = 0;   // of the ready ones: priority below the default
  uint64_t damaged = 0;  // pending, but their records cannot be read
  uint64_t held = 0;     // scheduled and ready jobs in memory
  // While the queue lags behind the others (backlog.cc): its jobs at or behind this place in the
  // order of timers lie on disk only. Never behind the common frontier.
  std::optional<Frontier> frontier;
  size_t lagging_place = 0;        // among the lagging queues
  uint32_t held_place = 0;         // among what each of them holds
  uint32_t frontier_place = 0;     // among the times of their frontiers
  std::optional<uint32_t> hunger;  // among those of them without a ready job
  std::optional<QueuePause> pause;
  QueueSettings settings;
  RateBucket bucket;
  std::optional<wheel::TimerHandle> rate_timer;  // somebody waits for the bucket
  // Since the start of the daemon.
  uint64_t enqueued = 0;
  uint64_t handed_out = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;
  uint64_t pauses = 0;
  bool stored = false;  // the store knows the name; else only a waiting worker does
  // Its place among the queues without a job, which may be forgotten.
  std::optional<std::list<QueueId>::iterator> among_empty;
  WallTime first_dead;          // no row of the dead is older
  bool counts_changed = false;  // since the open batch began
  bool to_serve = false;        // has got ready jobs since its waiters were last looked at
  bool cut_short = false;       // the look ended before all were looked at
  bool is_offered = false;      // while the queues of a lease request are gathered
};

class QueueTable {
 public:
  // Of all queues, by whom their counts are changed: nobody goes through 100,000 of them for these.
  struct Sums {
    uint64_t stored = 0;  // queues that the store knows
    uint64_t pending = 0;
    uint64_t dead = 0;
    uint64_t urgent = 0;
  };

  struct CountsChange {
    int64_t pending = 0;
    int64_t dead = 0;
  };

  // Null when there is none.
  Queue* Find(std::string_view name) const;
  // Of an id that a job carries: it must be there.
  Queue& operator[](QueueId id);
  const Queue& operator[](QueueId id) const;

  bool Has(QueueId id) const { return ToInt(id) < by_id_.size() && by_id_[ToInt(id)] != nullptr; }

  // Of an id that a row says job `job` is in: a store that has lost rows may not know the queue.
  Status CheckKnown(QueueId id, JobId job) const;

  // One that the store knows.
  Status Restore(QueueId id, std::string_view name);
  // A new one, under the next free id.
  Queue& Create(std::string_view name);
  // The store knows it from now on.
  void NoteStored(Queue* queue);
  // Of a queue that was restored.
  void Restore(Queue* queue, const storage::QueueCounts& counts);
  void Count(Queue* queue, const CountsChange& by);
  void CountUrgent(Queue* queue, int by);

  const Sums& sums() const { return sums_; }

  // One that the store does not know goes when no worker waits for it any more, and its id to
  // another: not now, as those on the way to it hold on to it, but with RemoveUnused.
  void RemoveIfUnused(const Queue& queue);
  void RemoveUnused();
  // One that the store no longer knows goes at once. Its id rests, so that no row of its time can
  // be taken for one of another queue, should a loss set some tables back and not others.
  void Forget(const Queue& queue);
  // To the store, since the start: after so much an id has rested.
  void Written(uint64_t bytes);
  // Ids below the largest that no queue has: they are used first. With a start nothing rests.
  // `lost`: those, in order, that have jobs and no name any more. Nobody gets them.
  void CollectFree(const std::vector<QueueId>& lost);

  size_t size() const { return by_name_.size(); }

  // In order of id.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachFrom(0, [&visit](Queue& queue) {
      visit(queue);
      return true;
    });
  }

  // The same from an id on, until `visit` says false.
  template <typename Visit>
  void ForEachFrom(uint64_t first, const Visit& visit) const {
    for (uint64_t id = first; id < by_id_.size(); ++id) {
      if (by_id_[id] != nullptr && !visit(*by_id_[id])) {
        return;
      }
    }
  }

 private:
  struct StringHash {
    using is_transparent = void;
    using is_avalanching = void;

    size_t operator()(std::string_view text) const;
  };

  Queue& Insert(QueueId id, std::string_view name);
  void Remove(QueueId id);

  std::vector<std::unique_ptr<Queue>> by_id_;  // position: the id
  std::vector<QueueId> unused_;                // perhaps, and perhaps twice
  std::vector<QueueId> free_;                  // ids below by_id_.size() that nobody has
  // The same, not to be used yet, and what had been written when they were forgotten; oldest first.
  std::deque<std::pair<QueueId, uint64_t>> resting_;
  uint64_t written_ = 0;
  Sums sums_;
  boost::unordered_flat_map<std::string, Queue*, StringHash, std::equal_to<>> by_name_;
};

}  // namespace delayd::engine

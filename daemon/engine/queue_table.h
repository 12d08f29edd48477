// daemon/engine/queue_table.h — the queues of the shard: ready jobs in order, waiting lease
// requests, exact counts.
//
// Units:   ready jobs come out by priority (smaller first), then by due time, then by id.
// Errors:  a queue id that the store gives twice is kDataLoss.
// Threads: one owner.
// Cost:    O(1) by id or name, O(log n) per ready job.
#pragma once

#include <algorithm>
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
  // The counts that clients see.
  uint64_t ready_count() const { return ready.size() + damaged; }

  uint64_t scheduled_count() const { return counts.pending - ready_count() - leased; }

  // Whether some of its pending jobs are on disk only.
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
  // order of timers are on disk only. Never behind the common frontier.
  std::optional<Frontier> frontier;
  size_t lagging_place = 0;        // LaggingQueues: its place in the list
  uint32_t held_place = 0;         // its place in the heap of held counts
  uint32_t frontier_place = 0;     // its place in the heap of frontiers
  std::optional<uint32_t> hunger;  // its place among those without a ready job
  std::optional<QueuePause> pause;
  QueueSettings settings;
  RateBucket bucket;
  std::optional<wheel::TimerHandle> rate_timer;  // while a request waits for the bucket
  // Since the start of the daemon.
  uint64_t enqueued = 0;
  uint64_t handed_out = 0;
  uint64_t acked = 0;
  uint64_t cancelled = 0;
  uint64_t pauses = 0;
  bool stored = false;  // the store knows the name; else only a waiting worker does
  // Its place among the queues without a job, which may be forgotten.
  std::optional<std::list<QueueId>::iterator> among_empty;
  WallTime first_dead;          // no row of a dead job is older
  bool counts_changed = false;  // since the open batch began
  bool to_serve = false;        // its waiters are to be looked at (ServeSoon)
  bool cut_short = false;       // the last look ended before all its jobs were looked at
  bool is_offered = false;      // while the queues of a lease request are gathered
};

class QueueTable {
 public:
  // Totals over all queues, kept with each change of their counts: nobody goes through 100,000
  // queues to add them up.
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
  // `id` comes from a job, so the queue must be there.
  Queue& operator[](QueueId id);
  const Queue& operator[](QueueId id) const;

  bool Has(QueueId id) const { return ToInt(id) < by_id_.size() && by_id_[ToInt(id)] != nullptr; }

  // Whether CollectFree was told that it has jobs but no name any more.
  bool IsLost(QueueId id) const { return std::ranges::binary_search(lost_, id); }

  // Checks the queue id in a row of job `job`: a store that has lost rows may not know the queue.
  Status CheckKnown(QueueId id, JobId job) const;

  // Adds a queue that the store knows.
  Status Restore(QueueId id, std::string_view name);
  // Adds a new queue, under the next free id.
  Queue& Create(std::string_view name);
  // The store knows it from now on.
  void NoteStored(Queue* queue);
  // Sets the counts of a restored queue.
  void Restore(Queue* queue, const storage::QueueCounts& counts);
  void Count(Queue* queue, const CountsChange& by);
  void CountUrgent(Queue* queue, int by);

  const Sums& sums() const { return sums_; }

  // A queue that the store does not know is removed once no worker waits for it, and its id is
  // reused. That happens in RemoveUnused and not right here, as callers still hold on to the queue.
  void RemoveIfUnused(const Queue& queue);
  void RemoveUnused();
  // Removes a queue that the store no longer knows, at once. Its id is not reused for a while:
  // should a loss set some tables back and not others, an old row of this queue must not be taken
  // for one of another queue.
  void Forget(const Queue& queue);
  // Notes that `bytes` more were written to the store: an id rests until limits::kQueueIdRestBytes
  // have been written.
  void Written(uint64_t bytes);
  // At a start: collects the ids below the largest that no queue has, which are given out first;
  // none is resting then. `lost`, in ascending order: ids that have jobs but no name any more. They
  // are never given out.
  void CollectFree(std::vector<QueueId> lost);

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

  std::vector<std::unique_ptr<Queue>> by_id_;  // indexed by id
  std::vector<QueueId> unused_;                // candidates; one may be there twice
  std::vector<QueueId> free_;                  // ids below by_id_.size() that no queue has
  // Such ids that may not be reused yet, each with the bytes written when it was forgotten; oldest
  // first.
  std::deque<std::pair<QueueId, uint64_t>> resting_;
  std::vector<QueueId> lost_;  // ascending
  uint64_t written_ = 0;
  Sums sums_;
  boost::unordered_flat_map<std::string, Queue*, StringHash, std::equal_to<>> by_name_;
};

}  // namespace delayd::engine

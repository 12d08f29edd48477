// daemon/beanstalk/reservations.h — the jobs that one connection has reserved, and when the first
// of their leases ends.
//
// Units:   the boot clock.
// Errors:  none; a job that is not held is not found.
// Threads: one.
// Cost:    O(log n) in the number of jobs held; nothing while none is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/job.h"
#include "base/limits.h"
#include "base/time.h"
#include "wheel/indexed_priority_queue.h"

#include <boost/container/deque.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::beanstalk {

class Reservations {
 public:
  void Add(const LeaseToken& token, BootTime ends, Millis ttr);

  struct Taken {
    LeaseToken token;
    bool is_over = false;  // its time to run is over; the engine may not have ended the lease yet
  };

  // Stops holding the job, whatever becomes of its lease. None: it was not held.
  std::optional<Taken> Take(JobId id, BootTime now);
  // Keeps holding the job; its time to run starts again at `now`. None: not held, or over.
  std::optional<LeaseToken> Touch(JobId id, BootTime now);
  // The earliest end of a lease after `now`. Of the leases that have ended all but the latest are
  // forgotten: the engine may not have ended those yet.
  std::optional<BootTime> SoonestEnd(BootTime now);
  // Leases known to have ended are not among them.
  std::vector<LeaseToken> TakeAll();

 private:
  struct End {
    BootTime at;
    JobId id{};

    friend bool operator<(const End& a, const End& b) { return a.at < b.at; }
  };

  using Ends = wheel::IndexedPriorityQueue<End>;

  struct Held {
    LeaseToken token;
    Millis ttr{0};
    std::optional<Ends::Handle> end;  // none: it has ended
  };

  using Map = boost::unordered_flat_map<JobId, Held>;

  // As many as one delete-batch can name.
  static constexpr size_t kEndedMax = limits::kCancelIdsMax;

  void Drop(Map::iterator held);

  Map held_;
  Ends ends_;
  // Leases that have ended, in this order; some may be held no longer. An empty std::deque takes
  // 576 bytes.
  boost::container::deque<LeaseToken> ended_;
};

}  // namespace delayd::beanstalk

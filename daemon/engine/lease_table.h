// daemon/engine/lease_table.h — the leases under way, each found by a small number that its job's
// entry holds.
//
// Errors:  none; the number of a lease that has ended may be given out again.
// Threads: one owner.
// Cost:    O(1), and no lease ever moves. The memory of ended leases is reused; beyond kSparesMax
//          of them their records, the greater part of it, are freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/time.h"
#include "storage/record.h"
#include "wheel/segmented_array.h"

namespace delayd::engine {

// Who holds a leased job, and what an ack needs to know without reading the record again.
struct LeaseInfo {
  uint64_t sequence = 0;  // 0: it is over
  BootTime expires;
  WallTime expires_wall;  // the same moment, as the wall clock stood when it was set
  std::string client;
  uint32_t timer = 0;  // the index of its timer in the lease wheel, or:
  // The timer has fired, and its index may be another timer's by now.
  static constexpr uint32_t kFired = UINT32_MAX;
  std::unique_ptr<storage::JobRecord> record;  // without the payload

  void EndAfter(Millis lease, const Now& now) {
    expires = now.boot + lease;
    expires_wall = now.wall + lease;
  }
};

class LeaseTable {
 public:
  using Index = uint32_t;

  // The caller sets all but the record.
  Index Add(storage::JobRecord&& record) {
    if (free_.empty()) {
      free_.push_back(static_cast<Index>(leases_.size()));
      leases_.push_back({});
    }
    const Index index = free_.back();
    free_.pop_back();
    std::unique_ptr<storage::JobRecord>& own = leases_[index].record;
    if (own == nullptr) {
      own = std::make_unique<storage::JobRecord>(std::move(record));
    } else {
      *own = std::move(record);
    }
    return index;
  }

  void Remove(Index index) {
    leases_[index].sequence = 0;
    if (free_.size() >= kSparesMax) {
      leases_[index].record.reset();
    }
    free_.push_back(index);
  }

  size_t size() const { return leases_.size() - free_.size(); }

  // The most leases that there ever were at once; ForEach looks at that many.
  size_t places() const { return leases_.size(); }

  // In no order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < leases_.size(); ++i) {
      if (leases_[i].sequence != 0) {
        visit(leases_[i]);
      }
    }
  }

  LeaseInfo& operator[](Index index) { return leases_[index]; }

  const LeaseInfo& operator[](Index index) const { return leases_[index]; }

 private:
  static constexpr size_t kSparesMax = 4096;

  wheel::SegmentedArray<LeaseInfo> leases_;
  wheel::SegmentedArray<Index> free_;  // the last to end is reused first: its memory is warm
};

}  // namespace delayd::engine

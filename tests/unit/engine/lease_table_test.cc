// The leases under way.
#include "daemon/engine/lease_table.h"

#include <vector>

#include <gtest/gtest.h>

namespace delayd::engine {
namespace {

// Millions of them would be moved in one turn, while everybody waits.
TEST(LeaseTableTest, NoLeaseIsMovedByThoseThatCome) {
  LeaseTable leases;
  const LeaseTable::Index first = leases.Add({});
  const LeaseInfo* const place = &leases[first];
  for (int i = 0; i < 10'000; ++i) {
    leases.Add({});
  }
  EXPECT_EQ(&leases[first], place);
}

TEST(LeaseTableTest, TheNumberThatCameBackLastIsGivenFirst) {
  LeaseTable leases;
  const LeaseTable::Index first = leases.Add({});
  const LeaseTable::Index second = leases.Add({});
  leases.Remove(second);
  leases.Remove(first);
  EXPECT_EQ(leases.Add({}), first);
  EXPECT_EQ(leases.Add({}), second);
}

TEST(LeaseTableTest, ThoseThatAreOverAreNotVisited) {
  LeaseTable leases;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    leases[leases.Add({})].sequence = sequence;
  }
  leases.Remove(1);
  std::vector<uint64_t> visited;
  leases.ForEach([&visited](const LeaseInfo& lease) { visited.push_back(lease.sequence); });
  EXPECT_EQ(visited, (std::vector<uint64_t>{1, 3}));
}

}  // namespace
}  // namespace delayd::engine

// storage/insert_plan.h — what a commit is about to insert into the memtables, row by row. Private
// to the room.
//
// What:    RocksDB hands rows to a memtable one at a time; a list that knows the next ones can
//          search for their places side by side (skip_list.h). A plan is in effect while its object
//          lives, on the thread that made it: a commit writes all its rows on its own thread.
// Errors:  none: rows that come in another order are inserted as well, only more slowly.
// Threads: the one that made it.
#pragma once

#include <cstddef>
#include <span>

#include "storage/job_store.h"
#include "storage/key_head.h"
#include "storage/write_order.h"

namespace delayd::storage {

class InsertPlan {
 public:
  // Both arguments must outlive the plan. `on_durable` may be empty.
  InsertPlan(std::span<const WriteOrder::Row> rows, const JobStore::OnDurable& on_durable);
  ~InsertPlan();
  InsertPlan(const InsertPlan&) = delete;
  InsertPlan& operator=(const InsertPlan&) = delete;

  // nullptr: there is no plan.
  static InsertPlan* OfThisThread();

  // Called before the first row is inserted, when RocksDB has already written and synced its log.
  void Begin();
  // The key heads of the next rows, as long as they belong to one table; returns how many.
  size_t Next(std::span<KeyHead> heads) const;
  // One more row has been inserted.
  void Advance();

 private:
  std::span<const WriteOrder::Row> rows_;
  const JobStore::OnDurable* on_durable_;  // nullptr: none, or already called
};

}  // namespace delayd::storage

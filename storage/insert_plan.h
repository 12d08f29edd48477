// storage/insert_plan.h — what a commit is about to insert into the memtables, row by row. Private
// to the room.
//
// What:    RocksDB hands rows to a memtable one at a time; a list that knows the next ones can look
//          for their places side by side (skip_list.h). The plan is there while its object lives,
//          on the thread that made it: one commit writes all its rows itself.
// Errors:  none: rows that come in another order are inserted as well, only slower.
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
  // Both stay where they are as long as the plan. `on_durable` may be empty.
  InsertPlan(std::span<const WriteOrder::Row> rows, const JobStore::OnDurable& on_durable);
  ~InsertPlan();
  InsertPlan(const InsertPlan&) = delete;
  InsertPlan& operator=(const InsertPlan&) = delete;

  // nullptr: none.
  static InsertPlan* OfThisThread();

  // Before the first row is inserted: RocksDB writes and syncs its log before that.
  void Begin();
  // The heads of the rows that come next, as long as they are of one table; returns how many.
  size_t Next(std::span<KeyHead> heads) const;
  // One more row is inserted.
  void Advance();

 private:
  std::span<const WriteOrder::Row> rows_;
  const JobStore::OnDurable* on_durable_;  // nullptr: none, or called
};

}  // namespace delayd::storage

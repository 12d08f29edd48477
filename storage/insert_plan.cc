#include "storage/insert_plan.h"

#include <utility>

#include "base/check.h"

namespace delayd::storage {
namespace {

thread_local InsertPlan* current_plan = nullptr;

}  // namespace

InsertPlan::InsertPlan(std::span<const WriteOrder::Row> rows, const JobStore::OnDurable& on_durable)
    : rows_(rows), on_durable_(on_durable ? &on_durable : nullptr) {
  DELAYD_CHECK(current_plan == nullptr);
  current_plan = this;
}

InsertPlan::~InsertPlan() {
  current_plan = nullptr;
}

InsertPlan* InsertPlan::OfThisThread() {
  return current_plan;
}

void InsertPlan::Begin() {
  if (on_durable_ != nullptr) {
    (*std::exchange(on_durable_, nullptr))();
  }
}

size_t InsertPlan::Next(std::span<KeyHead> heads) const {
  size_t count = 0;
  while (count < heads.size() && count < rows_.size() && rows_[count].table == rows_[0].table) {
    heads[count] = rows_[count].head;
    ++count;
  }
  return count;
}

void InsertPlan::Advance() {
  rows_ = rows_.empty() ? rows_ : rows_.subspan(1);
}

}  // namespace delayd::storage

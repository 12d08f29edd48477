#include "daemon/engine/rows_ahead.h"

#include <algorithm>

#include "base/limits.h"
#include "base/status.h"
#include "storage/keys.h"

namespace delayd::engine {
namespace {

// Single reads after a scan that was of little use.
constexpr size_t kRest = limits::Bound(1024, 2);

}  // namespace

std::optional<std::string_view> RowsAhead::Find(std::string_view key,
                                                WallTime before,
                                                size_t wanted) {
  std::optional<size_t> place = Place(key, next_);
  if (!place) {
    if (wanted < kRowsMin) {
      return std::nullopt;
    }
    if (rest_ > 0) {
      --rest_;
      return std::nullopt;
    }
    if (!Read(key, before, std::min(wanted, kRowsMax))) {
      return std::nullopt;
    }
    place = 0;
  }
  Row& row = rows_[*place];
  next_ = *place + 1;
  ++taken_;
  return std::string_view(bytes_).substr(row.value_at, row.end - row.value_at);
}

void RowsAhead::Forget(std::string_view key) {
  if (const std::optional<size_t> place = Place(key, forgotten_)) {
    rows_[*place].is_there = false;
    forgotten_ = *place + 1;
  }
}

std::optional<size_t> RowsAhead::Place(std::string_view key, size_t guess) const {
  if (guess < rows_.size() && KeyOf(rows_[guess]) == key) {
    return rows_[guess].is_there ? std::optional(guess) : std::nullopt;
  }
  if (rows_.empty() || KeyOf(rows_.back()) < key) {
    return std::nullopt;  // most rows that change lie behind
  }
  const auto found = std::ranges::lower_bound(
      rows_, key, std::less<>(), [this](const Row& row) { return KeyOf(row); });
  if (found == rows_.end() || KeyOf(*found) != key || !found->is_there) {
    return std::nullopt;
  }
  return static_cast<size_t>(found - rows_.begin());
}

// Returns whether the row `from` is there.
bool RowsAhead::Read(std::string_view from, WallTime before, size_t rows) {
  if (taken_ * 4 < rows_.size()) {
    rest_ = kRest;
  }
  bytes_.clear();
  rows_.clear();
  next_ = forgotten_ = taken_ = 0;
  const Status scanned = store_.ScanAhead(
      storage::Table::kTimers,
      from,
      storage::TimerKey(before, JobId{}),
      [&](std::string_view key, std::string_view value) {
        const size_t at = bytes_.size();
        bytes_.append(key).append(value);
        rows_.push_back(
            {.key_at = at, .value_at = at + key.size(), .end = bytes_.size(), .is_there = true});
        return rows_.size() < rows;
      });
  if (!scanned.ok()) {
    rows_.clear();
  }
  if (rows_.size() < kRowsMin) {
    rest_ = kRest;  // deleted rows lie between those of ready jobs
  }
  return !rows_.empty() && KeyOf(rows_.front()) == from;
}

}  // namespace delayd::engine

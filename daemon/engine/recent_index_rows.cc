#include "daemon/engine/recent_index_rows.h"

#include <algorithm>

#include "base/check.h"
#include "storage/keys.h"

namespace delayd::engine {
namespace {

JobId IdOf(std::string_view key) {
  const StatusOr<JobId> id = storage::ParseIndexKey(key);
  DELAYD_CHECK(id.ok());
  return *id;
}

}  // namespace

RecentIndexRows::Row* RecentIndexRows::At(JobId id) const {
  const size_t place = ToInt(id) % kRows;
  const std::unique_ptr<Piece>& piece = pieces_[place / kPieceRows];
  return piece == nullptr ? nullptr : &(*piece)[place % kPieceRows];
}

void RecentIndexRows::Put(std::string_view key, std::string_view value) {
  const JobId id = IdOf(key);
  Row row{.id = id, .size = static_cast<uint8_t>(value.size())};
  if (value.size() > row.value.size()) {
    Delete(key);
    return;
  }
  std::ranges::copy(value, row.value.begin());
  const size_t place = ToInt(id) % kRows;
  std::unique_ptr<Piece>& piece = pieces_[place / kPieceRows];
  if (piece == nullptr) {
    piece = std::make_unique<Piece>();
  }
  (*piece)[place % kPieceRows] = row;
}

void RecentIndexRows::Delete(std::string_view key) {
  const JobId id = IdOf(key);
  if (Row* row = At(id); row != nullptr && row->id == id) {
    row->size = 0;
  }
}

std::optional<std::string_view> RecentIndexRows::Find(std::string_view key) const {
  const JobId id = IdOf(key);
  const Row* row = At(id);
  if (row == nullptr || row->id != id || row->size == 0) {
    return std::nullopt;
  }
  return std::string_view(row->value.data(), row->size);
}

}  // namespace delayd::engine

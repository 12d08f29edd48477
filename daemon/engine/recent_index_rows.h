// daemon/engine/recent_index_rows.h — the kIndex rows of the jobs that were stored last.
//
// What:    a job that is cancelled or moved before it is loaded is found by its index row, and most
//          often it is one of the newest. Ids ascend, so each of the last kRows ids has a place of
//          its own and needs no search. A row that is not here is read from the store; a row that
//          is here is what the store will have, since every put and delete of kIndex passes through
//          here.
// Errors:  none.
// Threads: one owner.
// Cost:    one access to memory; 24 bytes a row, in pieces that are allocated when they are needed,
//          and 12 MiB at most. Reading the store instead takes 2 to 5 µs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/job.h"
#include "base/limits.h"

namespace delayd::engine {

class RecentIndexRows {
 public:
  static constexpr size_t kRows = limits::Bound(size_t{1} << 19, size_t{1} << 5);

  // By the rows' keys.
  void Put(std::string_view key, std::string_view value);
  void Delete(std::string_view key);
  // Valid until the next Put or Delete.
  std::optional<std::string_view> Find(std::string_view key) const;

 private:
  struct Row {
    JobId id{};
    uint8_t size = 0;            // 0: none
    std::array<char, 15> value;  // longer ones are not kept
  };

  static_assert(sizeof(Row) == 24);
  static constexpr size_t kPieceRows = limits::Bound(size_t{1} << 12, size_t{1} << 3);
  using Piece = std::array<Row, kPieceRows>;

  Row* At(JobId id) const;  // nullptr: nothing was ever put near it

  std::array<std::unique_ptr<Piece>, kRows / kPieceRows> pieces_;
};

}  // namespace delayd::engine

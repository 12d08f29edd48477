// storage/batch_rep.h — a batch in the form of RocksDB's log. Private to the room.
//
// What:    builds in one pass the bytes that rocksdb::WriteBatch would hold for the same puts and
//          deletes; WriteBatch takes them over as they are (its constructor from a string).
// Errors:  none.
// Threads: any.
// Cost:    one allocation; a fraction of the instructions of one WriteBatch::Put per row.
// Source:  the comment on rep_ in RocksDB's db/write_batch.cc. Logs keep this form from version to
//          version; a test compares it with what the linked RocksDB makes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "storage/batch.h"
#include "storage/write_order.h"

namespace delayd::storage {

// RocksDB's numbers of the tables' column families.
using FamilyIds = std::array<uint32_t, kTableCount>;

// The operations in the order of `rows`. RocksDB sets the sequence number, the first 8 bytes.
std::string RepOf(const Batch& batch, std::span<const WriteOrder::Row> rows, const FamilyIds& ids);

}  // namespace delayd::storage

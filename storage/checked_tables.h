// storage/checked_tables.h — a file system for RocksDB that looks at the end of each table file
// before RocksDB reads it. Private to the room.
//
// Why not leave it to RocksDB: it reads a table's properties block before it knows whether the
// block's checksum is right. A build with assertions, such as Debian's, ends the process on a
// flipped bit there, without naming the damaged file. And nothing protects the footer: a flipped
// bit in its format version makes RocksDB read the file by other rules.
//
// Errors:  Corruption, with file and byte, from the open of the table.
// Threads: any.
// Cost:    three small reads when a table is opened.
// Source:  RocksDB's block-based tables: [blocks] [footer: checksum type u8 | handles of metaindex
//          and index, varints, filled up to 40 bytes | format version u32 | magic u64]; behind each
//          block its compression type u8 and a checksum u32, the lower half of XXH3 of the block
//          mixed with the type, or the masked crc32c of both; little-endian.
#pragma once

#include <cstdint>
#include <memory>

#include <rocksdb/file_system.h>

namespace delayd::storage {

// The version of RocksDB's table format that the store writes.
inline constexpr uint32_t kTableFormatVersion = 5;

std::shared_ptr<rocksdb::FileSystem> NewCheckedTables(
    const std::shared_ptr<rocksdb::FileSystem>& base);

}  // namespace delayd::storage

// tests/support/plain_tables.h — the tables of a store for RocksDB as it is, without what delayd
// sets, so that a test can flush one and not the others. Their files are of the one format that
// delayd reads: RocksDB's own choice changes from version to version.
#pragma once

#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include "storage/checked_tables.h"
#include "storage/job_store.h"

namespace delayd::test {

inline std::vector<rocksdb::ColumnFamilyDescriptor> PlainTables() {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.format_version = storage::kTableFormatVersion;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  std::vector<rocksdb::ColumnFamilyDescriptor> tables;
  for (size_t i = 0; i < storage::kTableCount; ++i) {
    tables.emplace_back(std::string(storage::TableName(static_cast<storage::Table>(i))), options);
  }
  return tables;
}

}  // namespace delayd::test

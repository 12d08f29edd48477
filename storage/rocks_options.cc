#include "storage/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include "base/check.h"
#include "base/coding.h"
#include "storage/checked_tables.h"
#include "storage/row_marks.h"
#include "storage/skip_list_memtable.h"

#if defined(__x86_64__)
// Uses the processor's crc32c instruction, where Debian's build uses tables: each byte of the log
// goes through this function. A function defined in the program takes precedence over the one in a
// shared library (docs/decisions/0079). The declaration is that of RocksDB's util/crc32c.h, which
// is not installed.
namespace rocksdb::crc32c {

uint32_t Extend(uint32_t init_crc, const char* data, size_t n);

uint32_t Extend(uint32_t init_crc, const char* data, size_t n) {
  return delayd::Crc32c({data, n}, init_crc);
}

}  // namespace rocksdb::crc32c
#endif

namespace delayd::storage {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kBloomBitsPerKey = 10;
constexpr int kZstdLevel = 1;

struct TableTuning {
  size_t memtable_bytes = 4 * kMiB;
  size_t block_bytes = 4096;
  bool bloom = false;     // only where absent keys are looked up
  bool payloads = false;  // holds what users send, which is most of the bytes
  bool counted = false;   // rows in a range are estimated
};

TableTuning TuningOf(Table table) {
  switch (table) {
    case Table::kTimers:
      // Read in order, so larger blocks compress better; the memtable is the strongest knob on
      // write amplification (64 MiB: 1.4 at a million pending jobs).
      return {.memtable_bytes = 64 * kMiB, .block_bytes = 16384, .payloads = true, .counted = true};
    case Table::kByQueue:
      return {.memtable_bytes = 16 * kMiB, .block_bytes = 16384, .counted = true};
    case Table::kIndex:
      return {.memtable_bytes = 16 * kMiB, .bloom = true};
    case Table::kKeys:
      return {.memtable_bytes = 16 * kMiB, .bloom = true};
    case Table::kBig:
      return {.memtable_bytes = 32 * kMiB, .block_bytes = 16384, .payloads = true};
    case Table::kDead:
      return {.memtable_bytes = 16 * kMiB, .block_bytes = 16384, .payloads = true, .counted = true};
    case Table::kDone:
      return {.memtable_bytes = 16 * kMiB, .block_bytes = 16384, .payloads = true};
    case Table::kMeta:
    case Table::kQueues:
      return {};
  }
  DELAYD_CHECK(false);
}

}  // namespace

rocksdb::DBOptions MakeDbOptions(const RocksJobStoreOptions& options, rocksdb::Env* env) {
  rocksdb::DBOptions db;
  db.env = env;
  // Strict: a flipped bit must cause a refusal, not silently drop what follows it, as the default
  // mode does.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.track_and_verify_wals_in_manifest = true;
  db.paranoid_checks = true;
  // The log is replayed at about 50 MB/s: its size is the time a restart takes.
  db.max_total_wal_size = options.wal_bytes_max;
  // It is read three times at each start; RocksDB's own limit is 1 GiB.
  db.max_manifest_file_size = options.manifest_bytes_max;
  // One flush and one compaction, plus a second compaction only when level 0 fills up: otherwise
  // the small tables would wait behind a long compaction of timers until writes to them are slowed
  // down. From 8 jobs on, 7.8 retries failed flushes wrongly.
  db.max_background_jobs = 3;
  // The store stops at the first error. 7.8's own recovery can make a close wait for ever (RocksDB
  // issue 11440).
  db.max_bgerror_resume_count = 0;
  db.max_open_files = -1;
  // At each open RocksDB starts this many threads, less one, for each family, whether it has files
  // or not. Its default of 16 took a third of the start of a small store (102 ms, 69 with 2) and of
  // one with ten million jobs (312 ms, 220; after a boot, with nothing cached, 330 and 263).
  db.max_file_opening_threads = 2;
  db.bytes_per_sync = kMiB;
  // One commit at a time.
  db.allow_concurrent_memtable_write = false;
  // Recycling and compression of the log have bugs in 7.8.3.
  db.recycle_log_file_num = 0;
  db.wal_compression = rocksdb::kNoCompression;
  // Nobody reads the file with the options. From RocksDB 9 on its default is that a start, and each
  // change of an option, fails where there is no room for it.
  db.fail_if_options_file_error = false;
  // Table files end up in backups and must not reveal anything about the machine.
  db.db_host_id = "";
  db.info_log_level = rocksdb::InfoLogLevel::INFO_LEVEL;
  db.keep_log_file_num = 5;
  db.max_log_file_size = 16 * kMiB;
  // Nothing should wake up while nothing is due.
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

std::vector<rocksdb::ColumnFamilyDescriptor> MakeColumnFamilies(
    const RocksJobStoreOptions& options) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    const TableTuning tuning = TuningOf(table);
    rocksdb::BlockBasedTableOptions blocks;
    blocks.block_cache = cache;
    blocks.block_size = tuning.block_bytes;
    // checked_tables.h knows both. crc32c would take three times as long.
    blocks.checksum = rocksdb::kXXH3;
    blocks.format_version = kTableFormatVersion;
    if (tuning.bloom) {
      blocks.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
    }
    rocksdb::ColumnFamilyOptions family;
    family.write_buffer_size = tuning.memtable_bytes;
    family.max_write_buffer_number = 3;
    family.memtable_factory = NewSkipListMemtables(HeadKindOf(table));
    // The newest files are soon compacted into others: compressing them too would cost a tenth of
    // the CPU time of an enqueue.
    family.compression_per_level = {rocksdb::kNoCompression, rocksdb::kLZ4Compression};
    // The last level holds the data that stays, so its payloads are worth more work. Zstandard also
    // shrinks text without repetitions, such as tokens in hexadecimal or base 64, which LZ4 stores
    // as it is.
    if (tuning.payloads) {
      family.bottommost_compression = rocksdb::kZSTD;
      family.bottommost_compression_opts.enabled = true;
      family.bottommost_compression_opts.level = kZstdLevel;
    }
    if (tuning.counted) {
      family.table_properties_collector_factories.push_back(NewRowMarks());
    }
    family.level_compaction_dynamic_level_bytes = true;
    family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
    families.emplace_back(std::string(TableName(table)), family);
  }
  return families;
}

}  // namespace delayd::storage

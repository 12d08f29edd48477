// A store on a disk whose fsync is free, its files, and ways to damage them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coding.h"
#include "storage/keys.h"
#include "storage/log_scan.h"
#include "storage/loss_account.h"
#include "storage/masked_crc.h"
#include "storage/record.h"
#include "storage/recovery.h"
#include "storage/rocks_job_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {

namespace fs = std::filesystem;

using test::ReadFile;
using test::WriteFile;

inline std::string Flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

// A record of RocksDB's log format, whole in one piece; or a piece of another type.
inline std::string Record(const std::string& payload, char type = '\x01') {
  std::string piece(1, type);
  piece += payload;
  const uint32_t crc = MaskCrc(Crc32c(piece));
  std::string out;
  const auto size = static_cast<uint32_t>(payload.size());
  for (const uint32_t byte : {crc, crc >> 8, crc >> 16, crc >> 24, size, size >> 8}) {
    out += static_cast<char>(byte);
  }
  return out + piece;
}

class RecoveryTest : public ::testing::Test {
 protected:
  std::string path() const { return dir_.Sub("data"); }

  StatusOr<std::unique_ptr<JobStore>> Open(bool accept_loss = false) {
    report_ = {};
    return OpenRocksJobStore({.path = path(), .env = env_.get(), .accept_loss = accept_loss},
                             &report_);
  }

  // Batches `first` to `last`, one job each, as the engine writes them; ends like a kill.
  void Commit(uint64_t first, uint64_t last, size_t payload_bytes = 20) {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status().message();
    for (uint64_t number = first; number <= last; ++number) {
      Batch batch;
      batch.Put(Table::kTimers, Key(number), std::string(payload_bytes, 'x'));
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
  }

  static std::string Key(uint64_t number) { return TimerKey(WallFromMillis(1), JobId{number}); }

  // The ids that a store holds, in order.
  static std::vector<uint64_t> Jobs(const JobStore& store) {
    std::vector<uint64_t> ids;
    EXPECT_TRUE(store
                    .Scan(Table::kTimers,
                          Key(0),
                          {},
                          [&](auto key, auto) {
                            ids.push_back(ToInt(ParseTimerKey(key)->id));
                            return true;
                          })
                    .ok());
    return ids;
  }

  // The path of the n-th newest log that holds something.
  std::string Log(size_t newest = 0) const {
    std::vector<std::string> logs;
    for (const auto& entry : fs::directory_iterator(path())) {
      std::error_code gone;  // an open store may remove it just now; its size is then the largest
      const auto size = entry.path().extension() == ".log" ? entry.file_size(gone) : 0;
      if (size > 0 && !gone) {
        logs.push_back(entry.path().string());
      }
    }
    std::ranges::sort(logs);
    return logs.at(logs.size() - 1 - newest);
  }

  std::string Manifest() const {
    const std::string current = ReadFile(path() + "/CURRENT");
    return path() + "/" + current.substr(0, current.size() - 1);
  }

  // A log with damage to acknowledged batches.
  std::string DamageMiddle() {
    Commit(1, 30);
    const std::string whole = ReadFile(Log());
    WriteFile(Log(), Flipped(whole, whole.size() / 2));
    return Log();
  }

  // The second half of the newest log becomes a log of its own. Tells where the first half is.
  std::string SplitLog() const {
    const std::string log = Log();
    const std::string whole = ReadFile(log);
    const uint64_t half = *ScanLog(Flipped(whole, whole.size() / 2)).damaged_at;
    WriteFile(newer_log(), whole.substr(half));
    WriteFile(log, whole.substr(0, half));
    return log;
  }

  std::string newer_log() const { return path() + "/900000.log"; }

  test::TempDir dir_;
  // For speed: its fsync is free.
  std::unique_ptr<rocksdb::Env> env_ = test::NewFaultEnv(std::make_shared<test::FaultFileSystem>());
  RecoveryReport report_;
};

}  // namespace delayd::storage

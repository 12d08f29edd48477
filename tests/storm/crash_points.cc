#include "tests/storm/crash_points.h"

#include <array>

namespace delayd::storm {
namespace {

constexpr auto kCrashPoints = std::to_array<CrashPointCase>({
    {"open/logs_recovered", Reached::kOnFirstStart, 1},
    {"open/database_open", Reached::kOnFirstStart, 1},
    {"store/written", Reached::kOnFirstStart, 1},
    {"floor/before_sync", Reached::kOnFirstStart, 1},
    {"open/checked", Reached::kOnFirstStart, 1},
    {"file/before_rename", Reached::kOnFirstStart, 1},
    {"file/renamed", Reached::kOnFirstStart, 1},
    {"main/loaded", Reached::kOnFirstStart, 1},

    {"open/logs_recovered", Reached::kOnStart, 1},
    {"rocksdb/flush_begins", Reached::kOnStart, 1},
    {"rocksdb/table_written", Reached::kOnStart, 8},
    {"open/database_open", Reached::kOnStart, 1},
    {"open/checked", Reached::kOnStart, 1},
    {"floor/before_sync", Reached::kOnStart, 1},
    {"load/page", Reached::kOnStart, 1},
    {"main/loaded", Reached::kOnStart, 1},
    {"main/epoch_durable", Reached::kOnStart, 1},
    {"main/before_ready", Reached::kOnStart, 1},

    {"recovery/copied", Reached::kOnTornStart, 1},
    {"recovery/cut", Reached::kOnTornStart, 1},
    {"open/database_open", Reached::kOnTornStart, 1},

    {"committer/before_write", Reached::kUnderLoad, 100},
    {"committer/after_write", Reached::kUnderLoad, 100},
    {"store/written", Reached::kUnderLoad, 100},
    {"server/sealed", Reached::kUnderLoad, 100},
    {"server/committed", Reached::kUnderLoad, 100},
    {"server/before_reply", Reached::kUnderLoad, 200},
    {"server/before_send", Reached::kUnderLoad, 200},
    {"server/after_send", Reached::kUnderLoad, 200},
    {"horizon/page", Reached::kUnderLoad, 3},
    {"rocksdb/log_turned", Reached::kUnderLoad, 5},
    {"rocksdb/flush_begins", Reached::kUnderLoad, 5},
    {"rocksdb/table_written", Reached::kUnderLoad, 5},
    {"rocksdb/flushed", Reached::kUnderLoad, 5},
    {"rocksdb/compaction_begins", Reached::kUnderLoad, 2},
    {"rocksdb/compacted", Reached::kUnderLoad, 2},
    {"rocksdb/table_deleted", Reached::kUnderLoad, 3},

    {"main/served", Reached::kOnStop, 1},
    {"close/before_flush", Reached::kOnStop, 1},
    {"rocksdb/flushed", Reached::kOnStop, 4},
    {"close/flushed", Reached::kOnStop, 1},
    {"close/before_floor", Reached::kOnStop, 1},
    {"floor/before_sync", Reached::kOnStop, 2},
    {"close/after_floor", Reached::kOnStop, 1},
});

}  // namespace

std::span<const CrashPointCase> CrashPointCases() {
  return kCrashPoints;
}

}  // namespace delayd::storm

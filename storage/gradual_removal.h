// storage/gradual_removal.h — a file system for RocksDB that removes large files a piece at a time,
// so that no sync of the log waits for one. Private to the room.
//
// What:    on a disk mounted with `discard`, as those of cloud images are, freeing the blocks of a
//          removed file is a request to the disk that everything behind it waits for. Measured: 16
//          to 22 ms for a sync during the removal of a file of 64 MiB, 2 to 6 ms during its removal
//          by 4 MiB every 10 ms. A file to be removed gets the ending kTrashEnding, and a separate
//          thread truncates it piece by piece; RocksDB is told at once that it is gone. If the file
//          has a second hard link, as during a backup, only the name is removed. In other
//          directories, such as that of a failed backup, or if the system refuses the thread, a
//          file is removed at once.
// Errors:  those of the file system where a file is removed at once. Later errors are reported to
//          nobody: what is left behind is removed at the next start.
// Threads: any. Files still pending when the file system is destroyed are removed then.
// Cost:    a thread from the first large file on, which sleeps until there are more. Removed files
//          keep their space for seconds, however large they are in total.
// Source:  what RocksDB's SstFileManager does with tables (but not with logs); that class would
//          also resume by itself after a full disk. RocksDB removes files with this ending when it
//          opens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <rocksdb/file_system.h>

namespace delayd::storage {

inline constexpr std::string_view kTrashEnding = ".trash";

// Files of `directory`, as RocksDB names it, larger than `step_bytes` are removed in steps of that
// size.
std::shared_ptr<rocksdb::FileSystem> NewGradualRemoval(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory, uint64_t step_bytes);

}  // namespace delayd::storage

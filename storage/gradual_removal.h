// storage/gradual_removal.h — a file system for RocksDB that removes large files a piece at a time,
// so that no sync of the log waits for one. Private to the room.
//
// What:    on a disk that is mounted with `discard`, as those of cloud images are, the blocks of a
//          removed file are a request to the disk that everything behind it waits for. Measured:
//          16 to 22 ms for a sync during the removal of a file of 64 MiB, 2 to 6 ms during its
//          removal by 4 MiB every 10 ms. A file to remove gets the ending kTrashEnding and loses
//          its end piece by piece in a thread of its own; RocksDB is told at once that it is gone.
//          A file of another name too, as a backup makes them, loses the name alone; and in other
//          directories, such as that of a backup that failed, a file goes at once.
//          So it does where the system refuses that thread.
// Errors:  those of the file system where it is removed at once. Later ones are nobody's: what is
//          left behind is removed at the next start.
// Threads: any. What is still there when the file system goes is removed then.
// Cost:    a thread from the first large file on, which sleeps until there are more. What is
//          removed keeps its space for seconds, whatever it is in all.
// Source:  what RocksDB's SstFileManager does with tables (and not with logs); that one would also
//          go on by itself after a full disk. RocksDB removes files of this ending when it opens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <rocksdb/file_system.h>

namespace delayd::storage {

inline constexpr std::string_view kTrashEnding = ".trash";

// Files of `directory`, as RocksDB names it, of more than `step_bytes` are removed by so many.
std::shared_ptr<rocksdb::FileSystem> NewGradualRemoval(
    const std::shared_ptr<rocksdb::FileSystem>& base, std::string directory, uint64_t step_bytes);

}  // namespace delayd::storage

// storage/disk_room.h — the room that df does not tell of. Private to the room.
//
// What:    a quota, a thin disk and a lack of inodes leave less than statvfs(2) says. So the disk
// is
//          asked for the room itself, for a moment: for a file without a name, which nothing is
//          left of, not even of a process that is killed.
// Units:   bytes.
// Errors:  as each says.
// Threads: any.
// Cost:    of asking: some blocks of the file system's journal; up to 0.1 s on btrfs near a quota.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace delayd::storage {

// 0, ENOSPC or EDQUOT. A file system that cannot be asked so, or only by writing (tmpfs), has room.
int AskForRoom(const std::string& directory, uint64_t bytes);

// What users who are not root may still write; none where the disk cannot be asked.
std::optional<uint64_t> FreeForAll(const std::string& directory);

// Of a disk that refuses to write, and has `free` bytes by df.
std::string WhyRefused(const std::string& directory, uint64_t free);

// Of logs and MANIFESTs that nobody writes: what was allocated ahead behind their ends, which a
// process that was killed has left.
void GiveBackAllocated(const std::string& directory);

}  // namespace delayd::storage

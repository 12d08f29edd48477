// storage/disk_room.h — how much room the disk really has, beyond what df shows. Private to the
// room.
//
// What:    with a quota, a thin-provisioned disk or a lack of inodes there is less room than
//          statvfs(2) reports. So the room is briefly allocated in an unnamed file, of which
//          nothing remains, even if the process is killed.
// Units:   bytes.
// Errors:  as stated at each function.
// Threads: any.
// Cost:    a question takes some blocks of the file system's journal; up to 0.1 s on btrfs near a
//          quota.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace delayd::storage {

// 0, ENOSPC or EDQUOT. A file system that cannot be asked this way, or only by writing (tmpfs),
// counts as having room.
int AskForRoom(const std::string& directory, uint64_t bytes);

// What users other than root may still write; nothing if the disk cannot be asked, or tells no
// sizes: ramfs, and FUSE whose server has no statfs.
std::optional<uint64_t> FreeForAll(const std::string& directory);

// Explains the refusal of a disk that has `free` bytes according to df.
std::string WhyRefused(const std::string& directory, uint64_t free);

// For logs and MANIFESTs that nobody writes any more: releases the space allocated ahead beyond
// their ends, which a killed process leaves behind.
void GiveBackAllocated(const std::string& directory);

}  // namespace delayd::storage

// storage/one_disk.h — do two directories share the room of one disk? Private to the room.
//
// Errors:  what cannot be asked counts as two disks.
// Threads: any.
// Cost:    two stat(2); where the numbers differ, one open(2) and fstatfs(2) more of each.
#pragma once

#include <string>

namespace delayd::storage {

bool AreOnOneDisk(const std::string& a, const std::string& b);

}  // namespace delayd::storage

// storage/free_memory.h — gives memory that was freed back to the system. Private to the room.
//
// What:    Debian's RocksDB brings jemalloc along, which keeps freed pages for a while and then
//          gives them up little by little, as memory is asked for: in a process that rests, never.
// Errors:  none.
// Threads: any.
// Cost:    milliseconds after a rush, a system call for each free range; pages that are needed
//          again cost a fault each.
// Source:  jemalloc's manual, arena.<i>.purge; malloc_trim of the GNU C library.
#pragma once

namespace delayd::storage {

void GiveBackFreeMemory();

}  // namespace delayd::storage

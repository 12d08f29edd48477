// storage/free_memory.h — returns freed memory to the system. Private to the room.
//
// What:    Debian's RocksDB brings jemalloc along, which keeps freed pages for a while and then
//          returns them little by little, as memory is allocated: in an idle process, never.
// Errors:  none.
// Threads: any.
// Cost:    milliseconds after a burst, one system call per free range; pages that are needed again
//          cost a fault each.
// Source:  jemalloc's manual, arena.<i>.purge; malloc_trim of the GNU C library.
#pragma once

namespace delayd::storage {

void GiveBackFreeMemory();

}  // namespace delayd::storage

#include "storage/free_memory.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cstddef>

namespace delayd::storage {

void GiveBackFreeMemory() {
  using Control = int (*)(const char*, void*, size_t*, void*, size_t);
  // Which allocator is in use depends on how the system's RocksDB was built.
  static const auto control = reinterpret_cast<Control>(::dlsym(RTLD_DEFAULT, "mallctl"));
  if (control == nullptr) {
    ::malloc_trim(0);
    return;
  }
  // 4096 stands for all arenas (MALLCTL_ARENAS_ALL).
  control("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace delayd::storage

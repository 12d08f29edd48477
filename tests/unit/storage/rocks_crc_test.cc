// The crc32c that RocksDB calls (decision 0079), against the one that the library brings.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "storage/rocks_options.h"

#if defined(__x86_64__)

namespace delayd::storage {
namespace {

using Extend = uint32_t (*)(uint32_t, const char*, size_t);

constexpr const char* kName = "_ZN7rocksdb6crc32c6ExtendEjPKcm";

TEST(RocksCrc, IsOursAndTheSameAsTheLibrarys) {
  ASSERT_FALSE(MakeColumnFamilies({}).empty());  // or nothing of that file may be linked
  const auto found = reinterpret_cast<Extend>(::dlsym(RTLD_DEFAULT, kName));
  const auto librarys = reinterpret_cast<Extend>(::dlsym(RTLD_NEXT, kName));
  ASSERT_NE(found, nullptr);
  ASSERT_NE(librarys, nullptr);
  EXPECT_NE(found, librarys) << "RocksDB computes with its tables";
  std::string bytes;
  uint32_t state = 7;
  for (size_t size = 0; size < 3000; ++size) {
    for (const size_t skip : {0U, 1U, 3U}) {
      const char* const from = bytes.data() + std::min(size_t{skip}, size);
      const size_t length = size - std::min(size_t{skip}, size);
      ASSERT_EQ(found(state, from, length), librarys(state, from, length)) << length << " bytes";
    }
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<char>(state >> 24));
  }
}

}  // namespace
}  // namespace delayd::storage

#endif

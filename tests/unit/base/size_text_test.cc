#include "base/size_text.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(SizeTextTest, TheLargestUnitThatIsExact) {
  EXPECT_EQ(FormatSize(0), "0B");
  EXPECT_EQ(FormatSize(1'048'576), "1MiB");
  EXPECT_EQ(FormatSize(1'048'577), "1048577B");
  EXPECT_EQ(FormatSize(uint64_t{3} << 40), "3TiB");
}

}  // namespace
}  // namespace delayd

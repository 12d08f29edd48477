#include "base/ending_text.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(EndingTextTest, IsReadAsItWasWritten) {
  const WallTime at = WallFromMillis(1'800'000'000'123);
  for (const bool cancelled : {false, true}) {
    const std::string message = "job 42" + FormatEnding(cancelled, at);
    const auto ending = EndingToldIn(message);
    ASSERT_TRUE(ending) << message;
    EXPECT_EQ(ending->outcome, cancelled ? "cancelled" : "acked");
    EXPECT_EQ(ending->finished, FormatUtc(at));
  }
}

TEST(EndingTextTest, IsReadAsAnOlderDaemonWroteIt) {
  const auto ending = EndingToldIn(
      "job 42 was cancelled at 2026-11-21T08:47:58.731Z and is finished; nothing was changed");
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->outcome, "cancelled");
}

TEST(EndingTextTest, IsNotReadFromAnythingElse) {
  const std::string acked = FormatEnding(false, WallTime());
  for (const std::string& message : {std::string(),
                                     std::string("job 42 is leased"),
                                     "key '" + acked + "' is too long",
                                     "job 42 was lost" + acked.substr(acked.find(" and is "))}) {
    EXPECT_FALSE(EndingToldIn(message)) << message;
  }
}

}  // namespace
}  // namespace delayd

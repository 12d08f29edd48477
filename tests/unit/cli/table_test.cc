#include "cli/table.h"

#include <locale.h>

#include <sstream>

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

class TableTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setlocale(LC_CTYPE, "C.UTF-8"); }

  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{out_, err_, {}};
};

TEST_F(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"ID", "KEY", "DUE"});
  table.Add({"1", "order:1", "now"});
  table.Add({"100", "", "later"});
  table.Flush(&console_);
  EXPECT_EQ(out_.str(),
            "ID   KEY      DUE\n"
            "1    order:1  now\n"
            "100  -        later\n");
}

TEST_F(TableTest, FurtherPagesHaveNoHeaderAndKeepTheWidths) {
  Table table({"ID", "KEY"});
  table.Add({"1000", "a"});
  table.Flush(&console_);
  table.Add({"1", "b"});
  table.Flush(&console_);
  EXPECT_EQ(out_.str(), "ID    KEY\n1000  a\n1     b\n");
}

TEST_F(TableTest, NoRowsLeaveTheHeader) {
  Table({"ID", "KEY"}).Flush(&console_);
  EXPECT_EQ(out_.str(), "ID  KEY\n");
}

TEST_F(TableTest, TheFirstColumnIsShortenedToTheWidthOfTheScreen) {
  Table table({"QUEUE", "READY"});
  table.Add({"orders", "1"});
  table.Add({"orders.of.the.shop", "2"});
  table.FitColumns({0}, 17);
  table.Flush(&console_);
  EXPECT_EQ(out_.str(),
            "QUEUE       READY\n"
            "orders      1\n"
            "orders....  2\n");
}

TEST_F(TableTest, TheFirstColumnKeepsItsNameOnAScreenThatIsTooNarrow) {
  Table table({"QUEUE", "READY"});
  table.Add({"orders", "1"});
  table.FitColumns({0}, 3);
  table.Flush(&console_);
  EXPECT_EQ(out_.str(), "QUEUE  READY\nor...  1\n");
}

TEST_F(TableTest, OfSeveralColumnsTheWidestIsShortenedFirst) {
  Table table({"ID", "QUEUE", "KEY"});
  table.Add({"1", "orders", "order:100000000000"});
  table.Add({"2", "a", "b"});
  table.FitColumns({1, 2}, 20);
  table.Flush(&console_);
  EXPECT_EQ(out_.str(),
            "ID  QUEUE   KEY\n"
            "1   orders  order...\n"
            "2   a       b\n");
}

TEST_F(TableTest, NoColumnIsShortenedBelowWhatItIsToKeep) {
  Table table({"QUEUE", "KEY"});
  table.Add({"orders.of.all", "order:1001"});
  table.FitColumns({0, 1}, 5, 10);
  table.Flush(&console_);
  EXPECT_EQ(out_.str(),
            "QUEUE       KEY\n"
            "orders....  order:1001\n");
}

TEST_F(TableTest, WideCharactersTakeTwoColumnsAndControlsAreEscaped) {
  EXPECT_EQ(DisplayWidth("gr\xc3\xbc\xc3\x9f"), 4U);
  EXPECT_EQ(DisplayWidth("\xe3\x81\x82"), 2U);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1U);  // an accent that stands on the letter before it
  Table table({"KEY", "N"});
  table.Add({"\xe3\x81\x82", "1"});
  table.Add({"a\x1b", "2"});
  table.Flush(&console_);
  EXPECT_EQ(out_.str(), "KEY    N\n\xe3\x81\x82     1\na\\x1b  2\n");
}

}  // namespace
}  // namespace delayd::cli

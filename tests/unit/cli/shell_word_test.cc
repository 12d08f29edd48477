#include "cli/shell_word.h"

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(ShellWordTest, QuotesWhatAShellWouldTakeForMore) {
  const std::pair<const char*, const char*> cases[] = {{"orders", "orders"},
                                                       {"a-b_c.d+e/f:g@9", "a-b_c.d+e/f:g@9"},
                                                       {"a;echo$(id)", "'a;echo$(id)'"},
                                                       {"/srv/my data", "'/srv/my data'"},
                                                       {"~", "'~'"},
                                                       {"it's", R"('it'\''s')"},
                                                       {"", "''"}};
  for (const auto& [text, word] : cases) {
    EXPECT_EQ(ShellWord(text), word);
  }
}

}  // namespace
}  // namespace delayd::cli

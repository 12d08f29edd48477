#include "base/option_words.h"

#include <gmock/gmock.h>

namespace delayd {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(const std::vector<std::string>& words) {
  return WithEmptyValues(words, [](const std::string& name) { return name == "--key"; });
}

TEST(OptionWordsTest, AnEmptyValueIsAWordOfItsOwn) {
  EXPECT_THAT(Split({"a", "--key=", "b"}), ElementsAre("a", "--key", "", "b"));
  EXPECT_THAT(Split({"--key=x", "--key=a="}), ElementsAre("--key=x", "--key=a="));
}

TEST(OptionWordsTest, WhatIsNoOptionWithAValueStaysAsItIs) {
  EXPECT_THAT(Split({"--flag=", "key=", "-k="}), ElementsAre("--flag=", "key=", "-k="));
  EXPECT_THAT(Split({"--key", "--key=", "b"}), ElementsAre("--key", "--key=", "b"));
  EXPECT_THAT(Split({"--", "--key="}), ElementsAre("--", "--key="));
}

}  // namespace
}  // namespace delayd

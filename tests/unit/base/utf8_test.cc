#include "base/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(Utf8Test, TellsTheLengthOfTheFirstCharacter) {
  EXPECT_EQ(Utf8Length("a"), 1U);
  EXPECT_EQ(Utf8Length("\xc3\xbc!"), 2U);
  EXPECT_EQ(Utf8Length("\xe2\x82\xac"), 3U);
  EXPECT_EQ(Utf8Length("\xf0\x9f\x95\x90"), 4U);
  EXPECT_EQ(Utf8Length(""), 0U);
}

TEST(Utf8Test, WhatRfc3629ForbidsIsNone) {
  for (const char* text : {"\x80",
                           "\xc0\x80",          // overlong
                           "\xc1\xbf",          // overlong
                           "\xe0\x9f\xbf",      // overlong
                           "\xf0\x8f\xbf\xbf",  // overlong
                           "\xed\xa0\x80",      // a surrogate
                           "\xf4\x90\x80\x80",  // above U+10FFFF
                           "\xf5\x80\x80\x80",  //
                           "\xff",              //
                           "\xc3",              // cut
                           "\xe2\x82",          // cut
                           "\xf0\x9f\x95",      // cut
                           "\xe2(\xa1"}) {      //
    EXPECT_EQ(Utf8Length(text), 0U);
    EXPECT_FALSE(IsShortUtf8(std::string("key") + text));
  }
  EXPECT_TRUE(IsShortUtf8("M\xc3\xbcller \xe2\x82\xac"));
  EXPECT_TRUE(IsShortUtf8(""));
}

TEST(Utf8Test, ControlsMayNotStandInALine) {
  EXPECT_EQ(PrintableLength("\xe2\x82\xac!"), 3U);
  EXPECT_EQ(PrintableLength(" "), 1U);
  for (const char* text : {"", "\n", "\x7f", "\xc2\x9b", "\u2028", "\u202e", "\u2069", "\xff"}) {
    EXPECT_EQ(PrintableLength(text), 0U);
  }
}

TEST(Utf8Test, AFrontHoldsWholeCharactersOnly) {
  const std::string text = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x95\x90";  // 1, 2, 3 and 4 bytes
  const std::vector<size_t> lengths = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t bytes = 0; bytes < lengths.size(); ++bytes) {
    EXPECT_EQ(Utf8Front(text, bytes), text.substr(0, lengths[bytes])) << bytes;
  }
  EXPECT_EQ(Utf8Front("\x80\x80\x80\x80\x80\x80", 5).size(), 5U) << "no UTF-8: bytes";
}

}  // namespace
}  // namespace delayd

#include "protocol/beanstalk/reply_writer.h"

#include <string>

#include <gtest/gtest.h>

namespace delayd::beanstalk {
namespace {

TEST(ReplyWriterTest, RepliesAreLinesAndBodies) {
  std::string out;
  AppendLine("INSERTED", uint64_t{18446744073709551615U}, &out);
  AppendLine("USING", "a", &out);
  AppendJob("RESERVED", 7, "x\r\ny", &out);
  AppendOk("---\n- a\n", &out);
  EXPECT_EQ(out,
            "INSERTED 18446744073709551615\r\nUSING a\r\nRESERVED 7 4\r\nx\r\ny\r\n"
            "OK 8\r\n---\n- a\n\r\n");
}

TEST(ReplyWriterTest, TextIsQuotedOnlyWhereYamlWouldReadSomethingElse) {
  YamlMap map;
  map.Add("number", 42);
  map.Add("plain", "azAZ-09+a/b;c.d$_()");
  map.Add("digits", "123");
  map.Add("word", "Yes");
  map.Add("null", "NULL");
  map.Add("text", "#1 SMP \"x\": \\");
  map.Add("pair", "a: b");
  map.Add("empty", "");
  map.AddWord("state", "ready");
  EXPECT_EQ(map.text(),
            "---\nnumber: 42\nplain: azAZ-09+a/b;c.d$_()\ndigits: \"123\"\nword: \"Yes\"\n"
            "null: \"NULL\"\ntext: \"#1 SMP \\\"x\\\": \\\\\"\npair: \"a: b\"\nempty: \"\"\nstate: "
            "ready\n");
  for (const std::string word : {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}) {
    YamlMap one;
    one.Add("word", word);
    one.Add("longer", word + "x");
    EXPECT_EQ(one.text(), "---\nword: \"" + word + "\"\nlonger: " + word + "x\n");
  }
}

TEST(ReplyWriterTest, AListNamesItsItems) {
  YamlList list;
  list.Add("default");
  list.Add("orders");
  EXPECT_EQ(list.text(), "---\n- default\n- orders\n");
}

}  // namespace
}  // namespace delayd::beanstalk

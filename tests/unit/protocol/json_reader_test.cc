#include "protocol/json_reader.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/json_writer.h"
#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status ReadAll(std::string_view json) {
  return ReadJsonObject(json, [](std::string_view, const JsonValue&) { return OkStatus(); });
}

std::vector<std::string> Texts(std::string_view json) {
  std::vector<std::string> texts;
  const Status status = ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) {
    texts.push_back(std::string(name) + "=" + std::string(value.text));
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return texts;
}

TEST(JsonReaderTest, GivesStringsUnescapedAndTheRestAsItStands) {
  EXPECT_THAT(
      Texts(
          R"( {"s":"a\n\u00e4","n": -1.50e+3 ,"t":true,"f":false,"z":null,"a":[1, 2] ,"o":{"x" : 1}} )"),
      ElementsAre("s=a\n\xc3\xa4",
                  "n=-1.50e+3",
                  "t=true",
                  "f=false",
                  "z=null",
                  "a=[1, 2]",
                  "o={\"x\" : 1}"));
  EXPECT_THAT(Texts("{}"), ElementsAre());
}

TEST(JsonReaderTest, NulInsideAStringIsKept) {
  EXPECT_THAT(Texts(R"({"s":"a\u0000b"})"), ElementsAre(std::string("s=a\0b", 5)));
}

TEST(JsonReaderTest, NumbersBeyondTheMachinePassAsText) {
  EXPECT_THAT(Texts(R"({"n":123456789012345678901234567890,"a":[1e999,-0]})"),
              ElementsAre("n=123456789012345678901234567890", "a=[1e999,-0]"));
}

TEST(JsonReaderTest, MalformedTextIsRefusedWhereverItIsBroken) {
  for (const char* json : {"",
                           " ",
                           "{",
                           "}",
                           "[]",
                           "null",
                           "\"a\"",
                           "12",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\":1}}",
                           "{\"a\":1} x",
                           "{\"a\":1}{}",
                           "{a:1}",
                           "{1:1}",
                           "{'a':1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":+1}",
                           "{\"a\":1e}",
                           "{\"a\":0x10}",
                           "{\"a\":NaN}",
                           "{\"a\":tru}",
                           "{\"a\":truee}",
                           "{\"a\":nul}",
                           "{\"a\":tru e}",
                           "{\"a\":\"b}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\u12\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"line\nbreak\"}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":[1,2}",
                           "{\"a\":[1 2]}",
                           "{\"a\":[1,]}",
                           "{\"a\":[,1]}",
                           "{\"a\":{\"b\" 1}}",
                           "{\"a\":{\"b\":1,}}",
                           "{\"a\":[}]}",
                           "{\"a\":[\"\\x\"]}",
                           "{\"a\":[01]}",
                           "{\"a\":[1]]}",
                           "{\"a\":1,,\"b\":2}",
                           "// c\n{}"}) {
    const Status status = ReadAll(json);
    EXPECT_EQ(status.reason(), "invalid_json") << json;
  }
  for (const char* json : {"{\"a\":1", "{\"a\":1} x"}) {
    EXPECT_THAT(ReadAll(json).message(),
                HasSubstr("that is missing, or something stands behind it"))
        << json;
  }
}

// What programs under Windows write, and nobody sees.
TEST(JsonReaderTest, AByteOrderMarkIsNamed) {
  EXPECT_THAT(ReadAll("\xef\xbb\xbf{}").message(), HasSubstr("byte order mark"));
}

TEST(JsonReaderTest, AMemberThatStandsTwiceIsRefused) {
  const Status status = ReadAll(R"({"a":1,"b":2,"\u0061":3})");
  EXPECT_EQ(status.reason(), "duplicate_member");
  EXPECT_THAT(status.message(), HasSubstr("member 'a': stands twice"));
}

TEST(JsonReaderTest, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(ReadAll(nested(kJsonDepthMax - 1)).ok());
  EXPECT_THAT(ReadAll(nested(kJsonDepthMax)).message(), HasSubstr("nested deeper than 128"));
  EXPECT_FALSE(ReadAll(nested(1'000'000)).ok());
  EXPECT_FALSE(ReadAll("{\"a\":" + std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(ReadAll(std::string(1'000'000, '{')).ok());
}

TEST(JsonReaderTest, MembersAreBounded) {
  JsonObjectWriter writer;
  for (size_t i = 0; i <= kJsonMembersMax; ++i) {
    writer.Number("m" + std::to_string(i), i);
  }
  EXPECT_THAT(ReadAll(writer.Take()).message(), HasSubstr("more than 256 members"));
}

TEST(JsonReaderTest, TheVisitorsErrorEndsTheReading) {
  int visits = 0;
  const Status status = ReadJsonObject(R"({"a":1,"b":2})", [&](std::string_view, const JsonValue&) {
    ++visits;
    return NotFound("enough");
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(visits, 1);
}

TEST(JsonReaderTest, AVisitorMayReadOnInside) {
  std::vector<std::string> seen;
  const Status status = ReadJsonObject(
      R"({"a":[{"x":1},{"x":2}],"b":3})",
      [&](std::string_view name, const JsonValue& value) -> Status {
        seen.emplace_back(name);
        if (value.kind != JsonKind::kArray) {
          return OkStatus();
        }
        return ReadJsonArray(value.text, [&](const JsonValue& element) -> Status {
          return ReadJsonObject(element.text, [&](std::string_view inner, const JsonValue& number) {
            seen.push_back(std::string(inner) + std::string(number.text));
            return OkStatus();
          });
        });
      });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(seen, ElementsAre("a", "x1", "x2", "b"));
}

TEST(JsonReaderTest, ThreadsDoNotShareParsers) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const std::string text(1000, static_cast<char>('a' + t));
      for (int i = 0; i < 500; ++i) {
        EXPECT_THAT(Texts("{\"s\":\"" + text + "\"}"), ElementsAre("s=" + text));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(JsonReaderTest, BrokenTextNeverBreaksTheReader) {
  std::mt19937_64 random = SeededRandom();
  const std::string whole =
      R"({"queue":"a","payload":{"x":[1,2.5e3,"\u00e4\n",null,true]},"key":"k"})";
  constexpr std::string_view kLetters = "{}[]\",:\\u0e+-. tfn\x01\xc3";
  for (int i = 0; i < 50'000; ++i) {
    std::string text = whole;
    for (uint64_t edits = random() % 4 + 1; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, random() % 3);
        text += ' ';
      } else {
        text[at] = kLetters[random() % kLetters.size()];
      }
    }
    static_cast<void>(ReadAll(text).ok());
  }
}

TEST(JsonWriterTest, AnyTextBecomesJsonThatReadsBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomBytes(&random, 40);
    JsonObjectWriter writer;
    writer.String("s", text);
    const std::vector<std::string> texts = Texts(writer.Take());
    ASSERT_EQ(texts.size(), 1U);
    if (IsUtf8(text)) {
      EXPECT_EQ(texts[0], "s=" + text);
    } else {
      EXPECT_THAT(texts[0], HasSubstr("\xef\xbf\xbd"));
    }
  }
}

TEST(JsonWriterTest, BadBytesAreReplacedOneByOne) {
  for (size_t length = 0; length < 20; ++length) {  // eight bytes are looked at in one
    const std::string fill(length, 'x');
    EXPECT_EQ(JsonString(fill + " ~/"), '"' + fill + " ~/\"");
    EXPECT_EQ(JsonString(fill + "\"\\\n"), '"' + fill + R"(\"\\\n")");
    EXPECT_EQ(JsonString(fill + '\x1f'), '"' + fill + "\\u001f\"");
    // DEL, and C1 from its first to its last; what has the same first byte is text.
    EXPECT_EQ(JsonString(fill + "\x7f"
                                "a\xc2\x80\xc2\x9b[2J\xc2\x9f\xc2\xa0\xc2\xa7"),
              '"' + fill + "\\u007fa\\u0080\\u009b[2J\\u009f\xc2\xa0\xc2\xa7\"");
  }
  EXPECT_EQ(JsonString("a\xff\xc3\xa4\xc3"), "\"a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\"");
}

TEST(JsonReaderTest, WholeNumbersAreExact) {
  EXPECT_EQ(JsonToUint({JsonKind::kNumber, "4294967295"}, 4294967295).value(), 4294967295);
  for (const char* text : {"4294967296", "-1", "1.0", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(JsonToUint({JsonKind::kNumber, text}, 4294967295).status().message(),
                HasSubstr(std::string("is ") + text + "; write a whole number"));
  }
  EXPECT_THAT(JsonToUint({JsonKind::kString, "7"}, 10).status().message(),
              HasSubstr("is a string"));
}

}  // namespace
}  // namespace delayd::protocol

#include "protocol/beanstalk/command_reader.h"

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace delayd::beanstalk {
namespace {

using ::testing::ElementsAre;

constexpr size_t kJobBytesMax = 65535;

std::string Describe(const Command& command) {
  switch (command.refusal) {
    case Refusal::kUnknownCommand:
      return "unknown";
    case Refusal::kBadFormat:
      return "bad";
    case Refusal::kJobTooBig:
      return "too big";
    case Refusal::kExpectedCrlf:
      return "no crlf";
    case Refusal::kNone:
      break;
  }
  std::string text = std::to_string(static_cast<int>(command.verb));
  text += " id=" + std::to_string(command.id) + " pri=" + std::to_string(command.priority) +
          " delay=" + std::to_string(command.delay.count()) +
          " ttr=" + std::to_string(command.ttr.count()) +
          " count=" + std::to_string(command.count) + " name=" + std::string(command.name) +
          " body=" + std::string(command.body);
  return text;
}

std::vector<std::string> ReadAll(std::string_view input, size_t piece) {
  CommandReader reader(kJobBytesMax);
  std::vector<std::string> commands;
  for (size_t at = 0; at < input.size(); at += piece) {
    reader.Append(input.substr(at, piece));
    while (const std::optional<Command> command = reader.Next()) {
      commands.push_back(Describe(*command));
    }
  }
  return commands;
}

std::vector<std::string> Read(std::string_view input) {
  std::vector<std::string> whole = ReadAll(input, input.size());
  EXPECT_EQ(ReadAll(input, 1), whole) << "byte by byte is different";
  return whole;
}

Command One(std::string_view line) {
  CommandReader reader(kJobBytesMax);
  reader.Append(line);
  const std::optional<Command> command = reader.Next();
  EXPECT_TRUE(command.has_value()) << line;
  EXPECT_FALSE(reader.Next().has_value()) << line;
  Command copy = command.value_or(Command{});
  copy.name = copy.body = {};
  return copy;
}

TEST(CommandReaderTest, PutCarriesItsNumbersAndItsBody) {
  CommandReader reader(kJobBytesMax);
  reader.Append("put 7 2 30 5\r\nhe\r\no\r\n");
  const std::optional<Command> command = reader.Next();
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->verb, Verb::kPut);
  EXPECT_EQ(command->refusal, Refusal::kNone);
  EXPECT_EQ(command->priority, 7U);
  EXPECT_EQ(command->delay, Millis(2000));
  EXPECT_EQ(command->ttr, Millis(30000));
  EXPECT_EQ(command->body, "he\r\no");
}

TEST(CommandReaderTest, EveryVerbIsReadWholeOrByteByByte) {
  const std::vector<std::pair<std::string, Verb>> lines = {
      {"put 0 0 1 0\r\n\r\n", Verb::kPut},
      {"use a\r\n", Verb::kUse},
      {"reserve\r\n", Verb::kReserve},
      {"reserve-with-timeout 5\r\n", Verb::kReserveWithTimeout},
      {"reserve-job 5\r\n", Verb::kReserveJob},
      {"delete 5\r\n", Verb::kDelete},
      {"release 5 1 2\r\n", Verb::kRelease},
      {"bury 5 1\r\n", Verb::kBury},
      {"touch 5\r\n", Verb::kTouch},
      {"watch a\r\n", Verb::kWatch},
      {"ignore a\r\n", Verb::kIgnore},
      {"peek 5\r\n", Verb::kPeek},
      {"peek-ready\r\n", Verb::kPeekReady},
      {"peek-delayed\r\n", Verb::kPeekDelayed},
      {"peek-buried\r\n", Verb::kPeekBuried},
      {"kick 5\r\n", Verb::kKick},
      {"kick-job 5\r\n", Verb::kKickJob},
      {"pause-tube a 5\r\n", Verb::kPauseTube},
      {"stats\r\n", Verb::kStats},
      {"stats-tube a\r\n", Verb::kStatsTube},
      {"stats-job 5\r\n", Verb::kStatsJob},
      {"list-tubes\r\n", Verb::kListTubes},
      {"list-tube-used\r\n", Verb::kListTubeUsed},
      {"list-tubes-watched\r\n", Verb::kListTubesWatched},
      {"quit\r\n", Verb::kQuit},
      {"put-ms 0 1 1 1\r\nx\r\n", Verb::kPutMs},
      {"put-key 0 1 1 1 order:1\r\nx\r\n", Verb::kPutKey},
      {"put-batch 1 12\r\n0 0 0 1\r\nx\r\n\r\n", Verb::kPutBatch},
      {"delete-key order:1\r\n", Verb::kDeleteKey},
      {"reserve-batch 10 5\r\n", Verb::kReserveBatch},
      {"delete-batch 2 3\r\n5 7\r\n", Verb::kDeleteBatch},
  };
  ASSERT_EQ(lines.size(), kVerbCount);
  std::string all;
  for (const auto& [line, verb] : lines) {
    const Command command = One(line);
    EXPECT_EQ(command.verb, verb) << line;
    EXPECT_EQ(command.refusal, Refusal::kNone) << line;
    all += line;
  }
  EXPECT_EQ(Read(all).size(), lines.size());
}

TEST(CommandReaderTest, ASpaceThatBelongsToTheVerbDecidesBetweenUnknownAndBadFormat) {
  for (const char* line : {"",
                           "put",
                           "use",
                           "kick",
                           "delete",
                           "release",
                           "bury",
                           "touch",
                           "watch",
                           "ignore",
                           "peek",
                           "PUT 1 1 1 1",
                           "frobnicate",
                           " reserve"}) {
    EXPECT_THAT(Read(std::string(line) + "\r\n"), ElementsAre("unknown")) << line;
  }
  for (const char* line : {"reservefoo",
                           "peek-readyx",
                           "reserve-job",
                           "reserve-with-timeout",
                           "stats-job",
                           "stats x",
                           "pause-tube",
                           "list-tubesx",
                           "reserve "}) {
    EXPECT_THAT(Read(std::string(line) + "\r\n"), ElementsAre("bad")) << line;
  }
  EXPECT_EQ(One("quitter\r\n").verb, Verb::kQuit);
}

TEST(CommandReaderTest, NumbersAreUnsignedDecimalInTheirRange) {
  for (const char* line : {"delete 18446744073709551615",
                           "delete  7",
                           "release 1 4294967295 4294967295",
                           "reserve-with-timeout 2147483647",
                           "reserve-with-timeout 5 junk",
                           "kick 3 junk"}) {
    EXPECT_EQ(One(std::string(line) + "\r\n").refusal, Refusal::kNone) << line;
  }
  for (const char* line : {"delete 18446744073709551616",
                           "delete -7",
                           "delete +7",
                           "delete 7x",
                           "delete 7 ",
                           "release 1 4294967296 0",
                           "release 1 0 4294967296",
                           "release 1 0",
                           "bury 1",
                           "reserve-with-timeout -1",
                           "reserve-with-timeout 2147483648",
                           "kick -1",
                           "kick x",
                           "put 4294967296 0 0 0",
                           "put 0 0 0",
                           "put 0 0 0 -1",
                           "put a 0 0 0",
                           "put 0 0 0 0 x",
                           "pause-tube a",
                           "pause-tube 5",
                           "pause-tube a x",
                           "pause-tube  1",
                           "pause-tubea 1"}) {
    EXPECT_EQ(One(std::string(line) + "\r\n").refusal, Refusal::kBadFormat) << line;
  }
}

TEST(CommandReaderTest, ATimeToRunOfZeroIsTheShortestThereIs) {
  EXPECT_EQ(One("put 0 0 0 0\r\n\r\n").ttr, Millis(1000));
  EXPECT_EQ(One("put-ms 0 0 0 0\r\n\r\n").ttr, Millis(1));
}

TEST(CommandReaderTest, NamesHaveTheirAlphabetAndTheirLength) {
  const std::string longest(200, 'a');
  EXPECT_EQ(One("use " + longest + "\r\n").refusal, Refusal::kNone);
  EXPECT_EQ(One("use A-Za-z0-9-+/;.$_()\r\n").refusal, Refusal::kNone);
  for (const std::string& name : {longest + "a",
                                  std::string("-a"),
                                  std::string("a b"),
                                  std::string(" a"),
                                  std::string("ä"),
                                  std::string("a:b")}) {
    EXPECT_EQ(One("use " + name + "\r\n").refusal, Refusal::kBadFormat) << name;
    EXPECT_EQ(One("watch " + name + "\r\n").refusal, Refusal::kBadFormat) << name;
  }
}

TEST(CommandReaderTest, OnlyCrAndLfTogetherEndALine) {
  EXPECT_THAT(Read("stats\n\r\nstats\r\r\n"), ElementsAre("bad", "bad"));
  EXPECT_THAT(Read("use a\nb\r\n"), ElementsAre("bad"));
}

TEST(CommandReaderTest, ANulByteIsBadFormat) {
  EXPECT_THAT(Read(std::string_view("stats\0\r\n", 8)), ElementsAre("bad"));
  EXPECT_THAT(Read(std::string_view("none\0\r\n", 7)), ElementsAre("bad")) << "and not unknown";
}

TEST(CommandReaderTest, ALineOf224BytesIsReadAndEachLongerOneIsRefusedOnce) {
  const std::string fits = "stats" + std::string(217, ' ') + "\r\n";
  ASSERT_EQ(fits.size(), kLineBytesMax);
  EXPECT_THAT(Read(fits + "quit\r\n").size(), 2U);
  for (const size_t bytes : {225U, 226U, 1000U, 100000U}) {
    const std::string line = std::string(bytes - 2, 'x') + "\r\n";
    EXPECT_THAT(Read(line + line + "use a\r\n"), ElementsAre("bad", "bad", Read("use a\r\n")[0]))
        << bytes;
  }
}

TEST(CommandReaderTest, ALongLineIsNotKept) {
  CommandReader reader(kJobBytesMax);
  for (int i = 0; i < 1000; ++i) {
    reader.Append(std::string(10000, 'x'));
    ASSERT_FALSE(reader.Next().has_value());
    ASSERT_LE(reader.buffered_bytes(), 1U);
  }
}

// A client that is always in the middle of its next command leaves no moment without input.
TEST(CommandReaderTest, WhatWasReadIsNotKeptThoughMoreIsAlwaysThere) {
  CommandReader reader(kJobBytesMax);
  std::set<const char*> places;
  reader.Append("put 0 0 1 1\r\n");
  for (int i = 0; i < 1000; ++i) {
    reader.Append("x\r\nput 0 0 1 1\r\n");
    const std::optional<Command> command = reader.Next();
    ASSERT_TRUE(command.has_value());
    places.insert(command->body.data());
    ASSERT_FALSE(reader.Next().has_value());
  }
  EXPECT_LT(places.size(), 10U) << "the buffer grows";
}

TEST(CommandReaderTest, ABodyThatIsTooBigIsSkippedAndNotKept) {
  CommandReader reader(10);
  reader.Append("put 0 0 1 1000000 junk\r\n");
  for (int i = 0; i < 100; ++i) {
    reader.Append(std::string(10000, 'x'));
    ASSERT_FALSE(reader.Next().has_value());
    ASSERT_EQ(reader.buffered_bytes(), 0U);
  }
  reader.Append("??stats\r\n");  // whatever the two bytes behind the body are
  EXPECT_EQ(reader.Next()->refusal, Refusal::kJobTooBig);
  EXPECT_EQ(reader.Next()->verb, Verb::kStats);
}

TEST(CommandReaderTest, TheLargestBodyIsAccepted) {
  const std::string body(kJobBytesMax, 'b');
  EXPECT_EQ(One("put 0 0 1 65535\r\n" + body + "\r\n").refusal, Refusal::kNone);
  EXPECT_THAT(Read("put 0 0 1 65536\r\n" + body + "b\r\nuse a\r\n"),
              ElementsAre("too big", Read("use a\r\n")[0]));
}

TEST(CommandReaderTest, ABodyWithoutItsEndIsRefusedAndConsumed) {
  EXPECT_THAT(Read("put 0 0 1 3\r\nabcXYuse a\r\n"), ElementsAre("no crlf", Read("use a\r\n")[0]));
}

TEST(CommandReaderTest, BehindJunkAfterTheNumbersTheBodyIsReadAsCommands) {
  EXPECT_THAT(Read("put 0 0 1 5 junk\r\nstats\r\n"), ElementsAre("bad", Read("stats\r\n")[0]));
}

// A body is data: it may be a command, if only by chance.
TEST(CommandReaderTest, OfARefusedLineOfOurOwnTheBodyIsSkipped) {
  const std::string longest(200, 'k');
  const std::vector<std::string> lines = {"put-key 0 0 1 5 a b",
                                          "put-key 0 0 1 5",
                                          "put-key 0 0 1 5 " + longest + "k",
                                          "put-key 0 0 1 5 " + longest + longest,
                                          "put-key 0 0 1 5 a" + std::string(1, '\0'),
                                          "put-key 0 -1 1 5 key",
                                          "put-key 0 0 3153600000001 5 key",
                                          "put-ms 0 0 1 5 junk",
                                          "put-ms x 0 1 5",
                                          "put-batch 1001 5",
                                          "put-batch 0 5",
                                          "put-batch -1 5",
                                          "put-batch 1 5 junk",
                                          "delete-batch 1001 5"};
  const std::string next = Read("use a\r\n")[0];
  for (const std::string& line : lines) {
    for (const char* body : {"use b\r\n", "stats\r\n", "\r\n\r\n\r\r\n"}) {
      EXPECT_THAT(Read(line + "\r\n" + body + "use a\r\n"), ElementsAre("bad", next)) << line;
    }
  }
}

TEST(CommandReaderTest, WithoutASizeThereIsNoBodyToSkip) {
  const std::string far(300, ' ');
  const std::vector<std::string> lines = {"put-key 0 0 1 key",
                                          "put-ms 0 0 1",
                                          "put-ms 0 0 1 4294967296",
                                          "put-batch 5",
                                          "put-batch 1 x",
                                          "put-key 0 0 1 " + far + "5 key",
                                          "put 0 0 1 5" + far + "k",
                                          "put 0 0 1 99999" + std::string(1, '\0')};
  const std::string next = Read("use a\r\n")[0];
  for (const std::string& line : lines) {
    EXPECT_THAT(Read(line + "\r\nuse a\r\n"), ElementsAre("bad", next)) << line;
  }
}

TEST(CommandReaderTest, PutKeyTakesTheLongestKey) {
  const std::string key(200, 'k');
  const std::string line = "put-key 4294967295 3153600000000 3153600000000 1 " + key + "\r\nx\r\n";
  EXPECT_EQ(One(line).refusal, Refusal::kNone);
}

TEST(CommandReaderTest, ABatchIsExactlyItsJobs) {
  const auto parse = [](std::string_view body, uint64_t count) {
    std::vector<BatchJob> jobs;
    const Refusal refusal = ParseBatch(body, count, 10, &jobs);
    return std::pair(refusal, jobs.size());
  };
  constexpr std::string_view kTwo = "0 5 0 1\r\nx\r\n9 0 70 2 key\r\nyz\r\n";
  EXPECT_EQ(parse(kTwo, 2), std::pair(Refusal::kNone, size_t{2}));
  EXPECT_EQ(parse(kTwo, 1).first, Refusal::kBadFormat);
  EXPECT_EQ(parse(kTwo, 3).first, Refusal::kBadFormat);
  EXPECT_EQ(parse("0 0 0 11\r\nabcdefghijk\r\n", 1).first, Refusal::kJobTooBig);
  EXPECT_EQ(parse("0 0 0 3\r\nabcXY", 1).first, Refusal::kExpectedCrlf);
  EXPECT_EQ(parse("0 0 0 300\r\nabc", 1).first, Refusal::kJobTooBig);
  EXPECT_EQ(parse("0 0 0 9\r\nabc", 1).first, Refusal::kBadFormat);
  EXPECT_EQ(parse("0 0 0 1", 1).first, Refusal::kBadFormat);
}

TEST(CommandReaderTest, ABatchOfIdsIsExactlyItsIds) {
  const auto parse = [](std::string_view body, uint64_t count) {
    std::vector<uint64_t> ids;
    const Refusal refusal = ParseIds(body, count, &ids);
    return std::pair(refusal, ids);
  };
  EXPECT_EQ(parse("5 7", 2), std::pair(Refusal::kNone, std::vector<uint64_t>({5, 7})));
  EXPECT_EQ(parse("18446744073709551615", 1).first, Refusal::kNone);
  for (const char* wrong : {"", "5", "5 7 9", "5 x", "5 -7", "5 7 ", "5\n7", "5,7"}) {
    EXPECT_EQ(parse(wrong, 2).first, Refusal::kBadFormat) << wrong;
  }
  EXPECT_EQ(parse("18446744073709551616", 1).first, Refusal::kBadFormat);
}

TEST(CommandReaderTest, TheLinesOfOurBatchesAreCheckedWholly) {
  for (const char* wrong : {"reserve-batch 0 1\r\n",
                            "reserve-batch 1001 1\r\n",
                            "reserve-batch 1\r\n",
                            "reserve-batch 1 2147483648\r\n",
                            "reserve-batch 1 1 \r\n",
                            "delete-batch 0 1\r\n5\r\n",
                            "delete-batch 1001 1\r\n5\r\n",
                            "delete-batch 1\r\n"}) {
    EXPECT_EQ(One(wrong).refusal, Refusal::kBadFormat) << wrong;
  }
  EXPECT_EQ(One("delete-batch 1 21001\r\n" + std::string(21001, '1') + "\r\n").refusal,
            Refusal::kJobTooBig);
  EXPECT_EQ(One("delete-batch 1 1\r\n1xx").refusal, Refusal::kExpectedCrlf);
}

TEST(CommandReaderTest, HowTheInputIsCutMakesNoDifference) {
  std::mt19937_64 random(delayd::test::Seed());
  const std::vector<std::string> parts = {"put 1 2 3 4\r\n",
                                          "abcd\r\n",
                                          "\r\n",
                                          "\r",
                                          "\n",
                                          "stats\r\n",
                                          "delete 4\r\n",
                                          "put 1 1 1 70000\r\n",
                                          std::string(300, 'y'),
                                          "use tube\r\n",
                                          "reserve\r\n",
                                          "put-batch 1 12\r\n",
                                          "put-batch 1001 12\r\n",
                                          "put-key 0 0 1 4 ",
                                          "delete-batch 1 2\r\n",
                                          "0 0 0 1\r\nx\r\n",
                                          "\0",
                                          " "};
  for (int round = 0; round < 300; ++round) {
    std::string input;
    for (int i = 0; i < 30; ++i) {
      input += parts[random() % parts.size()];
    }
    const std::vector<std::string> whole = ReadAll(input, input.size());
    ASSERT_EQ(ReadAll(input, 1), whole) << input;
    ASSERT_EQ(ReadAll(input, 1 + random() % 40), whole) << input;
  }
}

}  // namespace
}  // namespace delayd::beanstalk

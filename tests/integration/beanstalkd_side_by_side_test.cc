// Conversations with Debian's beanstalkd and with delayd, each about a part of the protocol.
#include <regex>
#include <string>
#include <vector>

#include "tests/integration/side_by_side.h"

namespace delayd::test {
namespace {

TEST_F(SideBySideTest, TheLifeOfAJob) {
  Compare({
      {"put 5 0 60 3\r\nabc\r\n"},
      {"put 1 0 60 0\r\n\r\n"},
      {"put 5 100 60 2\r\n\r\n\r\n"},
      {"peek 1\r\npeek 3\r\npeek 4\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\n", 6},
      {"reserve\r\nreserve\r\nreserve-with-timeout 0\r\n", 3},
      {"delete 2\r\n", 1, 1},
      {"release 1 0 0\r\n", 1, 1},
      {"bury 1 0\r\n", 1, 1},
      {"touch 1\r\n", 1, 1},
      {"kick-job 1\r\n", 1, 1},
      {"reserve-job 1\r\n", 1, 1},
      {"touch 1\r\ntouch 99\r\n", 2},
      {"release 1 9 0\r\nrelease 1 9 0\r\n", 2},
      {"bury 2 7\r\nbury 2 7\r\n", 2},
      {"peek-buried\r\npeek-ready\r\n", 2},
      {"kick 10\r\nkick 10\r\nkick 10\r\nkick 0\r\n", 4},
      {"reserve-job 1\r\nreserve-job 1\r\nreserve-job 999\r\n", 3},
      {"release 1 0 100\r\nkick-job 1\r\nkick-job 1\r\n", 3},
      {"delete 1\r\ndelete 1\r\n", 2, 1},
      {"delete 2\r\ndelete 3\r\n", 2, 1},
      {"reserve-with-timeout 1\r\n"},
  });
}

TEST_F(SideBySideTest, TubesAndWatchLists) {
  Compare({
      {"list-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\n", 3},
      {"use a\r\nwatch b\r\nwatch b\r\nignore default\r\nignore b\r\nignore c\r\n", 6},
      {"list-tubes\r\nlist-tube-used\r\nlist-tubes-watched\r\n", 3},
      {"stats-tube none\r\npause-tube none 5\r\n", 2},
      {"stats-tube later\r\nuse later\r\nuse a\r\n", 3},
      {"put 0 0 60 1\r\nx\r\n"},
      {"watch a\r\npause-tube a 100\r\nreserve-with-timeout 0\r\npause-tube a 0\r\nreserve\r\n", 5},
      {"delete 1\r\n"},
      {"use " + std::string(200, 'n') + "\r\n"},
      {"use " + std::string(201, 'n') + "\r\n"},
      {"use A-Za-z0-9-+/;.$_()\r\n"},
  });
}

TEST_F(SideBySideTest, WatchedTubesAreListedInTheSameOrder) {
  Compare({
      {"watch a\r\nwatch b\r\nwatch c\r\nignore default\r\nlist-tubes-watched\r\n", 5},
      {"ignore b\r\nwatch d\r\nignore c\r\nlist-tubes-watched\r\n", 4},
  });
}

TEST_F(SideBySideTest, WrongCommands) {
  const std::string big(70000, 'b');
  std::vector<Step> steps;
  for (const char* line : {"put",
                           "use",
                           "kick",
                           "delete",
                           "",
                           "PUT 1 1 1",
                           "foo",
                           " reserve",
                           "reservefoo",
                           "peek-readyx",
                           "use -a",
                           "use a b",
                           "use ",
                           "watch ",
                           "delete x",
                           "delete -1",
                           "delete 1x",
                           "delete  1",
                           "release 1",
                           "release 1 2",
                           "bury 1",
                           "touch x",
                           "kick x",
                           "kick-job x",
                           "reserve-job",
                           "stats x",
                           "stats-job",
                           "stats-job x",
                           "stats-tube",
                           "stats-tube -",
                           "list-tubesx",
                           "list-tube-used x",
                           "pause-tube",
                           "pause-tube default",
                           "pause-tube default x",
                           "pause-tube -a 1",
                           "pause-tube  1",
                           "put a 0 0 0",
                           "put 0 0 0",
                           "put -1 0 0 0",
                           "put 4294967296 0 0 0",
                           "delete 18446744073709551616",
                           "peek 18446744073709551615",
                           "release 1 4294967296 0",
                           "reserve-with-timeout 0 junk",
                           "kick 1 junk",
                           "stats\n",
                           "use a\nb"}) {
    steps.push_back({std::string(line) + "\r\n"});
  }
  steps.push_back({std::string("stats\0\r\n", 8)});
  steps.push_back({"put 0 0 1 70000\r\n" + big + "\r\n"});
  steps.push_back({"put 0 0 1 65535\r\n" + std::string(65535, 'b') + "\r\n"});
  steps.push_back({"put 0 0 1 65536\r\n" + std::string(65536, 'b') + "\r\n"});
  steps.push_back({"put 0 0 1 70000 junk\r\n" + big + "\r\n"});
  steps.push_back({"put 0 0 1 5 junk\r\n"});
  steps.push_back({std::string(224 - 2, 'x') + "\r\n"});
  steps.push_back({std::string(226 - 2, 'x') + "\r\n"});
  steps.push_back({std::string(5000, 'x') + "\r\n"});
  steps.push_back({"list-tube-used\r\n"});
  for (const char* number : {"-1", "+1", "\t1", "4294967296"}) {
    steps.push_back({.send = "kick " + std::string(number) + "\r\n",
                     .ours = "BAD_FORMAT\r\n",
                     .why = "`kick -1`"});
  }
  steps.push_back({.send = "put 0 0 1 3\r\nabcXY"});
  steps.push_back({.send = "put 0 0 1 3\r\nabc\r\n",
                   .ours = "INSERTED 2\r\n",
                   .why = "An id is used only by a job"});
  Compare(steps);
}

TEST_F(SideBySideTest, TimesAndWarnings) {
  const std::vector<Step> steps = {
      {"put 0 0 1 1\r\na\r\nreserve\r\nreserve\r\n", 3},
      {"reserve-with-timeout 5\r\n"},  // its time runs out, and it is ready again
      {"delete 1\r\n"},
      {"put 0 0 2 1\r\nb\r\nreserve\r\nreserve-with-timeout 9\r\ntouch 2\r\n", 4},
      {"reserve-with-timeout 0\r\ndelete 2\r\n", 2},
      {"put 0 1 60 1\r\nc\r\nreserve-with-timeout 0\r\nreserve\r\ndelete 3\r\n", 4},
  };
  // Where a server or its client is not run for a second, a job's time is over sooner than with the
  // other. A true difference is there each time.
  std::vector<std::string> theirs;
  std::vector<std::string> ours;
  for (int tries = 0; tries < 3 && (tries == 0 || ours != theirs); ++tries) {
    if (tries > 0) {
      StartBoth();
    }
    theirs = Converse(peer_->socket(), steps);
    ours = Converse(OurSocket(), steps);
  }
  EXPECT_EQ(ours, theirs);
}

TEST_F(SideBySideTest, ManyAtOnceInOrder) {
  std::string puts;
  for (int i = 0; i < 300; ++i) {
    puts += "put " + std::to_string(i % 7) + " 0 60 2\r\nxy\r\n";
  }
  Compare({{puts, 300}, {"reserve\r\nreserve\r\nreserve\r\nreserve\r\n", 4}});
}

TEST_F(SideBySideTest, AmongEqualsTheOneDueFirstIsFirst) {
  Compare({
      {"put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\nreserve\r\n", 3},
      {"release 1 0 0\r\n"},
      {.send = "reserve\r\n",
       .ours = "RESERVED 2 1\r\nb\r\n",
       .why = "Among jobs of equal priority"},
  });
}

TEST_F(SideBySideTest, PutsSentTogetherAreReadyTogether) {
  Compare({
      {"list-tube-used\r\nreserve\r\n", 1, 1},
      {"put 5 0 60 1\r\na\r\nput 1 0 60 1\r\nb\r\n", 2},
      {.send = "",
       .client = 1,
       .ours = "RESERVED 2 1\r\nb\r\n",
       .why = "those of puts that are sent together"},
  });
}

TEST_F(SideBySideTest, ALineWithALoneCrIsRefusedOnItsOwn) {
  Compare({
      {.send = "use a\rb\r\nuse c\r\n" + std::string(300, 'x') + "\r\nlist-tube-used\r\n",
       .replies = 2,
       .ours = "BAD_FORMAT\r\nUSING c\r\n",
       .why = "a CR without an LF"},
  });
}

// Names and order of the fields; the values that must be equal.
TEST_F(SideBySideTest, StatsHaveTheSameFieldsInTheSameOrder) {
  const std::vector<Step> steps = {
      {"use q\r\nput 2000 0 60 1\r\na\r\nput 3 100 60 1\r\nb\r\nwatch q\r\nreserve\r\n", 5},
      {"release 1 5 0\r\nreserve\r\nbury 1 6\r\nkick 1\r\n", 4},
      {"stats\r\n"},
      {"stats-tube q\r\n"},
      {"stats-job 1\r\n"},
      {"stats-job 2\r\n"},
  };
  const std::vector<std::string> theirs = Converse(peer_->socket(), steps);
  const std::vector<std::string> ours = Converse(OurSocket(), steps);
  const auto fields = [](const std::string& yaml) {
    static const std::regex kField("\n([a-z-]+):");
    std::vector<std::string> names;
    for (std::sregex_iterator it(yaml.begin(), yaml.end(), kField), end; it != end; ++it) {
      names.push_back((*it)[1]);
    }
    return names;
  };
  for (const size_t i : {2U, 3U, 4U, 5U}) {
    EXPECT_EQ(fields(ours[i]), fields(theirs[i])) << steps[i].send;
  }
  // The size of the body and the number of a log file differ, and beanstalkd 1.13 has quotes around
  // the names of tubes.
  const auto normal = [](const std::string& yaml) {
    static const std::regex kOwn("OK [0-9]+|file: [0-9]+|age: [0-9]+|time-left: [0-9]+|\"");
    return std::regex_replace(yaml, kOwn, "");
  };
  EXPECT_EQ(normal(ours[3]), normal(theirs[3]));
  EXPECT_EQ(normal(ours[4]), normal(theirs[4]));
  EXPECT_EQ(normal(ours[5]), normal(theirs[5]));
}

}  // namespace
}  // namespace delayd::test

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/stats_json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"

#include <sys/stat.h>

namespace delayd::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line.substr(0, line.find('\t')));
  }
  return lines;
}

// What TAB offers behind these words, of which the last is being typed.
std::vector<std::string> Tab(std::vector<std::string> words, CtlOptions options = {}) {
  words.insert(words.begin(), "__complete");
  const Outcome outcome = Ctl(words, std::move(options));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  return Lines(outcome.out);
}

CtlOptions WithQueues() {
  return {.daemon = [](const Request& request) -> Answer {
    EXPECT_EQ(request.target, "/v1/queues?limit=1000");
    EXPECT_LE(request.timeout, Millis(200));
    return Ok(protocol::QueuesToJson({{.name = "mail"}, {.name = "orders"}, {.name = "orphans"}}));
  }};
}

TEST(CompletionTest, VerbsAndTheirOptionsComeFromTheirDeclarations) {
  EXPECT_THAT(Tab({"li"}), ElementsAre("list"));
  EXPECT_THAT(Tab({"-o", "json", "li"}), ElementsAre("list"));
  EXPECT_THAT(Tab({"help", "enq"}), ElementsAre("enqueue"));
  EXPECT_THAT(Tab({"list", "--st"}), ElementsAre("--state"));
  EXPECT_THAT(Tab({"list", "--ut"}), ElementsAre("--utc"));
  EXPECT_THAT(Tab({"enqueue", "--f"}), ElementsAre("--file"));
  EXPECT_THAT(Tab({"nonsense", ""}), IsEmpty());
}

TEST(CompletionTest, EveryVerbOfTheHelpIsOffered) {
  const std::string help = Ctl({"--help"}).out;
  const std::vector<std::string> verbs = Tab({""});
  EXPECT_GT(verbs.size(), 18U);
  for (const std::string& verb : verbs) {
    if (verb != "help") {
      EXPECT_THAT(help, HasSubstr("\n  " + verb + " "));
    }
  }
}

TEST(CompletionTest, ValuesOfOptionsInEitherForm) {
  EXPECT_THAT(Tab({"list", "--state", "d"}), ElementsAre("dead"));
  EXPECT_THAT(Tab({"list", "--state=d"}), ElementsAre("--state=dead"));
  EXPECT_THAT(Tab({"list", "--state", "=", "d"}), ElementsAre("dead"));  // as bash takes it apart
  EXPECT_THAT(Tab({"list", "--state", "="}).size(), 5U);
  EXPECT_THAT(Tab({"-o", "js"}), ElementsAre("json", "jsonl"));
  EXPECT_THAT(Tab({"-qo", "js"}), ElementsAre("json", "jsonl"));
  EXPECT_THAT(Tab({"list", "-aqo", "js"}), ElementsAre("json", "jsonl"));
  EXPECT_THAT(Tab({"completion", "z"}), ElementsAre("zsh"));
  EXPECT_THAT(Tab({"enqueue", "--file", ""}), ElementsAre(":files"));
  EXPECT_THAT(Tab({"work", "--exec", "ca"}), ElementsAre(":files"));
  EXPECT_THAT(Tab({"enqueue", "--in", ""}), IsEmpty());
}

TEST(CompletionTest, OnlyWhatTheVerbTakesIsOffered) {
  EXPECT_THAT(Tab({"kick", "--state", ""}), ElementsAre("dead", "scheduled"));
  EXPECT_THAT(Tab({"cancel", "--state", ""}), ElementsAre("scheduled", "ready", "dead"));
  EXPECT_THAT(Tab({"reschedule", "--state", ""}), ElementsAre("scheduled", "ready"));
  EXPECT_THAT(Tab({"wait", "--for", ""}), ElementsAre("done", "fired"));
  EXPECT_THAT(Tab({"pause", "--for", ""}), IsEmpty());
  EXPECT_THAT(Tab({"enqueue", "--on-conflict=k"}), ElementsAre("--on-conflict=keep"));
}

TEST(CompletionTest, WordsOfVerbsAreOfferedOnce) {
  EXPECT_THAT(Tab({"drain", ""}), ElementsAre("end"));
  EXPECT_THAT(Tab({"clock", "a"}), ElementsAre("accept"));
  EXPECT_THAT(Tab({"config", ""}), ElementsAre("show", "check"));
  EXPECT_THAT(Tab({"config", "check", ""}), ElementsAre(":files"));
  EXPECT_THAT(Tab({"config", "-o", "json", "check", ""}), ElementsAre(":files"));
  EXPECT_THAT(Tab({"config", "-qo", "json", "check", ""}), ElementsAre(":files"));
  EXPECT_THAT(Tab({"config", "check", "file", ""}), IsEmpty());
}

TEST(CompletionTest, QueueNamesComeFromTheDaemon) {
  EXPECT_THAT(Tab({"list", "--queue", "or"}, WithQueues()), ElementsAre("orders", "orphans"));
  EXPECT_THAT(Tab({"list", "--queue=m"}, WithQueues()), ElementsAre("--queue=mail"));
  EXPECT_THAT(Tab({"queues", "m"}, WithQueues()), ElementsAre("mail"));
  EXPECT_THAT(Tab({"pause", "QUEUE", ""}, WithQueues()), IsEmpty()) << "it has its queue";
}

TEST(CompletionTest, QueueNamesComeFromTheServerThatTheLineNames) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"-s", "unix:/x", "list", "--queue", "m"},
        {"--server=unix:/x", "list", "--queue", "m"},
        {"list", "-qs", "unix:/x", "--queue", "m"},
        {"list", "-aqsunix:/x", "--queue", "m"},
        {"--server", "=", "unix:/x", "list", "--queue", "m"},
        // As bash takes them apart.
        {"-s", "unix", ":", "/x", "list", "--queue", "m"},
        {"--server", "=", "unix", ":", "/x", "list", "--key", "a", ":", "1", "--queue", "m"}}) {
    std::vector<std::string> words = line;
    words.insert(words.begin(), "__complete");
    EXPECT_EQ(Ctl(words, WithQueues()).server, "unix:/x");
  }
}

TEST(CompletionTest, QueueNamesAreAskedForWithTheTokenThatTheLineNames) {
  const test::TempDir dir;
  const std::string path = dir.Sub("token");
  std::ofstream(path) << "t0ken\n";
  chmod(path.c_str(), 0600);
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"--token-file", path, "list", "--queue", "m"},
        {"list", "--token-file=" + path, "--queue", "m"}}) {
    std::vector<std::string> words = line;
    words.insert(words.begin(), "__complete");
    const Outcome outcome = Ctl(words, WithQueues());
    ASSERT_EQ(outcome.requests.size(), 1U);
    EXPECT_EQ(outcome.requests[0].token, "t0ken");
  }
}

TEST(CompletionTest, WithoutADaemonThereAreNoQueuesAndNoWords) {
  EXPECT_THAT(Tab({"list", "--queue", ""},
                  {.daemon = [](const Request&) -> Answer { return Unavailable("nobody there"); }}),
              IsEmpty());
}

TEST(CompletionTest, EachShellHasAScriptThatAsksTheProgram) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = Ctl({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("__complete"), Not(HasSubstr("enqueue"))));
  }
  // These two leave --file=PATH one word, and complete files by words.
  EXPECT_THAT(Ctl({"completion", "zsh"}).out, HasSubstr("compset -P 1 '*='"));
  EXPECT_THAT(Ctl({"completion", "fish"}).out, HasSubstr("__fish_complete_path \"$path\""));
  EXPECT_THAT(Ctl({"completion", "tcsh"}).err, HasSubstr("use bash, zsh or fish"));
  EXPECT_EQ(Ctl({"completion"}).code, 2);
}

TEST(ManualTest, KnowsEveryVerbOptionAndExitCode) {
  const std::string manual = Ctl({"__manual", "verbs"}).out;
  for (const std::string& verb : Tab({""})) {
    if (verb == "help") {
      continue;
    }
    EXPECT_THAT(manual, HasSubstr("## " + verb + "\n"));
    for (const std::string& option : Tab({verb, "--"})) {
      const std::string both = manual + Ctl({"__manual", "options"}).out;
      EXPECT_THAT(both, HasSubstr(option + "*")) << verb;
    }
  }
  EXPECT_THAT(Ctl({"__manual", "exit-codes"}).out, HasSubstr("*130*\n\tinterrupted (143 "));
  EXPECT_EQ(Ctl({"__manual", "poems"}).code, 2);
}

}  // namespace
}  // namespace delayd::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CommandLineTest, BareItPrintsHelpWithTwoExamples) {
  const Outcome outcome = Ctl({});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("delayctl enqueue --in 30m"),
                    HasSubstr("delayctl work --queue"),
                    HasSubstr("  cancel ")));
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLineTest, EveryVerbHasHelpWithAnExample) {
  for (const char* verb :
       {"enqueue",  "list",   "show",       "cancel", "reschedule", "run",   "wait",
        "forecast", "status", "top",        "import", "export",     "work",  "lease",
        "ack",      "nack",   "bury",       "extend", "queues",     "stats", "ping",
        "doctor",   "config", "completion", "version"}) {
    for (const auto& args :
         {std::vector<std::string>{verb, "--help"}, {verb, "-h"}, {"help", verb}}) {
      const Outcome outcome = Ctl(args);
      EXPECT_EQ(outcome.code, 0) << verb;
      EXPECT_THAT(outcome.out,
                  AllOf(HasSubstr("Usage: delayctl " + std::string(verb)),
                        HasSubstr("  delayctl " + std::string(verb))));
      EXPECT_TRUE(outcome.requests.empty());
    }
  }
}

TEST(CommandLineTest, ThatNoAnswerInTimeIsExitCode6IsInTheHelp) {
  const auto hangs = [](const Request&) {
    return Answer(DeadlineExceeded("no answer", "timed_out"));
  };
  for (const char* verb : {"ping", "status"}) {
    EXPECT_EQ(Ctl({verb}, {.daemon = hangs}).code, 6) << verb;
    EXPECT_THAT(Ctl({verb, "--help"}).out, HasSubstr("6: no answer within --timeout")) << verb;
  }
}

TEST(CommandLineTest, ThatADrainIsExitCode1IsInTheHelp) {
  const Outcome outcome = Ctl({"enqueue", "x"}, {.daemon = [](const Request&) {
                                return Problem(ResourceExhausted("delayd is draining", "draining"));
                              }});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(Ctl({"enqueue", "--help"}).out,
              HasSubstr("Exit code 1: nothing was enqueued, because the daemon is draining"));
  EXPECT_THAT(Ctl({"drain", "--help"}).out, HasSubstr("enqueue ends with exit code 1"));
}

TEST(CommandLineTest, ThatAFullQueueEndsAnImportEvenWithContinueIsInTheHelp) {
  EXPECT_THAT(Ctl({"import", "--help"}).out,
              HasSubstr("room\nafter that, it ends, even with --continue."));
}

TEST(CommandLineTest, TheUsageShowsWhatMayBeLeftOutAndHowManyItTakes) {
  const std::pair<const char*, const char*> cases[] = {
      {"wait", " (ID | --key KEY)\n"},
      {"cancel", " (ID... | --key KEY | FILTER)\n"},
      {"show", " (ID... | --key KEY)\n"},
      {"reschedule", " FILTER) (--in DURATION | --at TIME | --priority N)\n"},
      {"work", " (--webhook URL | --exec CMD [ARGS...])\n"},
      {"recover", " [OPTIONS] --data-dir DIR\n"},
      {"ack", " TOKEN...\n"},
      {"pause", " QUEUE\n"},
      {"queues", " [QUEUE]\n"},
      {"backup", " DIR\n"},
      {"completion", " SHELL\n"},
      {"import", " [FILE]\n"},
      {"config", " [ACTION] [FILE]\n"},
      {"enqueue", " [PAYLOAD]\n"},
      {"clock", " [ACTION]\n"},
      {"list", " [OPTIONS]\n"}};
  for (const char* verb : {"cancel", "kick", "reschedule"}) {
    EXPECT_THAT(Ctl({verb, "--help"}).out, HasSubstr("without: the whole queue\n")) << verb;
  }
  for (const auto& [verb, arguments] : cases) {
    EXPECT_THAT(Ctl({verb, "--help"}).out, HasSubstr(arguments)) << verb;
  }
  EXPECT_THAT(Ctl({"__manual", "verbs"}).out,
              AllOf(HasSubstr("*delayctl wait* [_options_] (_ID_ | *\\--key* _KEY_)\n"),
                    HasSubstr("*delayctl queues* [_options_] [_QUEUE_]\n"),
                    HasSubstr("[_options_] (*\\--webhook* _URL_ | *\\--exec* _CMD_ [_ARGS_...])\n"),
                    HasSubstr("*delayctl ack* [_options_] _TOKEN_...\n")));
}

TEST(CommandLineTest, TheLongHelpTellsTheExitCodes) {
  for (const auto& args :
       {std::vector<std::string>{"--help"}, {"-h"}, {"help"}, {"help", "help"}}) {
    EXPECT_THAT(Ctl(args).out, HasSubstr("Exit codes: 0 done"));
  }
}

TEST(CommandLineTest, OptionsOfAllVerbsMayStandBeforeAnyOfThem) {
  EXPECT_THAT(Ctl({"-s", "unix:/x", "help", "list"}).out, HasSubstr("Usage: delayctl list"));
  EXPECT_THAT(Ctl({"-s", "unix:/x", "help"}).out, HasSubstr("Exit codes: 0 done"));
  const Outcome bundled = Ctl({"-qo", "json", "list", "--limit", "0"});
  EXPECT_EQ(bundled.code, 2);
  EXPECT_THAT(bundled.err, HasSubstr(R"("detail":"list: --limit: '0' is no whole number)"));
}

TEST(CommandLineTest, TheVersionHasManyNames) {
  for (const auto& args : {std::vector<std::string>{"--version"}, {"-V"}, {"version"}}) {
    EXPECT_THAT(Ctl(args).out, StartsWith("delayctl 0."));
  }
}

TEST(CommandLineTest, MistakesAreNamedWithTheCureAndExitWith2) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"enqueu"}, "unknown verb 'enqueu'; did you mean 'enqueue'?"},
      {{"frobnicate"}, "unknown verb 'frobnicate'; see: delayctl --help"},
      {{""}, "unknown verb ''; see: delayctl --help"},  // of a variable that is not set
      {{"", "list"}, "unknown verb ''"},
      {{"--foo"}, "unknown option '--foo'"},
      {{"--verison"}, "unknown option '--verison'; did you mean '--version'?"},
      {{"--socket", "/run/d.sock", "list"}, "unknown option '--socket'; did you mean '--server'?"},
      {{"--queue", "q", "list"},
       "unknown option '--queue'; a verb's own options stand behind the verb"},
      {{"--server", "/run/d.sock", "lst"}, "unknown verb 'lst'; did you mean 'list'?"},
      {{"put", "x"}, "unknown verb 'put'; did you mean 'enqueue'?"},
      {{"del", "1"}, "unknown verb 'del'; did you mean 'cancel'?"},
      {{"watch"}, "unknown verb 'watch'; did you mean 'top'?"},
      {{"tail"}, "unknown verb 'tail'; did you mean 'list'?"},
      {{"stop"}, "unknown verb 'stop'; see: delayctl --help"},
      {{"start"}, "unknown verb 'start'; see: delayctl --help"},
      {{"hel"}, "unknown verb 'hel'; see: delayctl --help"},
      {{"reserve"}, "unknown verb 'reserve'; did you mean 'lease'?"},
      {{"enqueue", "--delay", "3s", "x"}, "unknown option '--delay'; did you mean '--in'?"},
      {{"enqueue", "--after=3s", "x"}, "unknown option '--after'; did you mean '--in'?"},
      {{"list", "--after", "1h"}, "unknown option '--after'; did you mean '--due-after'?"},
      {{"enqueue", "--run-at", "x"}, "did you mean '--at'?"},
      {{"enqueue", "--tube", "a", "x"}, "did you mean '--queue'?"},
      {{"enqueue", "--ttl", "1h", "x"}, "did you mean '--expires-after'?"},
      {{"enqueue", "--ttr", "60", "x"}, "did you mean '--lease'?"},
      {{"enqueue", "--retries", "3", "x"}, "did you mean '--max-attempts'?"},
      {{"enqueue", "--prio", "3", "x"}, "did you mean '--priority'?"},
      {{"enqueue", "--id", "o:1", "x"}, "did you mean '--key'?"},
      {{"enqueue", "--data", "x"}, "give PAYLOAD as an argument, without an option"},
      {{"pause", "--queue", "x"}, "unknown option '--queue'; give QUEUE as an argument"},
      {{"show", "--id", "1"}, "give ID as an argument"},
      {{"enqueue", "-key", "o:1"}, "unknown option '-key'; did you mean '--key'?"},
      {{"enqueue", "-k=o:1", "x"}, "the '=' of '-k=o:1' would be a part of the value; write -k "},
      {{"enqueue", "-k=", "x"}, "the '=' of '-k='"},
      {{"enqueue", "-qk=o:1", "x"},
       "the '=' of '-qk=o:1' would be a part of the value; write -qk "},
      {{"-s=unix:/x", "list"}, "the '=' of '-s=unix:/x'"},
      {{"list", "-queue=q"}, "unknown option '-queue'; did you mean '--queue'?"},
      {{"work", "--parallel", "4", "--exec", "cat"}, "did you mean '--concurrency'?"},
      {{"export", "-q"}, "export has no -q; for ids alone: delayctl list --all -q"},
      {{"--timeout"}, "--timeout needs a value"},
      {{"--utc", "--server", "unix:/x"}, "no verb given"},
      {{"list", "--limt", "3"}, "list: unknown option '--limt'; did you mean '--limit'?"},
      {{"list", "--limt=3"}, "unknown option '--limt'; did you mean '--limit'?"},
      {{"list", "-x"}, "unknown option '-x'"},
      {{"list", "extra"}, "unexpected argument 'extra'; a queue is named with --queue"},
      {{"stats", "extra"}, "unexpected argument 'extra'; it takes options only"},
      {{"enqueue", "--", "-x", "-q"}, "unexpected argument '-q'; quote a text"},
      {{"list", "--", "-x"}, "unexpected argument '-x'; a queue is named with --queue"},
      {{"list", "--", "--", "-x"}, "unexpected argument '--'"},
      {{"enqueue", "one", "two", "--", "-x"}, "unexpected argument 'two'"},
      {{"enqueue", "one", "extra"}, "unexpected argument 'extra'; quote a text"},
      {{"list", "--limit"}, "--limit needs a value"},
      {{"list", "--limit", "many"}, "--limit: 'many' is no whole number"},
      {{"list", "--limit", "-1"}, "--limit: '-1' is no whole number"},
      {{"list", "--limit", "1", "--limit", "2"}, "--limit is given twice"},
      {{"list", "--all", "--limit", "2"}, "--all and --limit contradict"},
      {{"list", "--limit", "0"}, "--limit: '0' is no whole number from 1"},
      {{"list", "--state", "asleep"}, "'asleep' is no state; use scheduled"},
      {{"list", "--due-before", "soon"}, "--due-before: time 'soon' is not understood"},
      {{"list", "--due-before", "tomorrow"},
       "'tomorrow' has no hour; write it like tomorrow 09:00"},
      {{"list", "--due-before", "30x"}, "--due-before: duration '30x' has an unknown unit"},
      {{"list", "--due-before", "PT30X"}, "--due-before: duration 'PT30X'"},
      {{"list", "--due-before", ""}, "--due-before: duration '' is empty"},
      {{"list", "--due-before", "2027-02-30T00:00:00Z"},
       "--due-before: time '2027-02-30T00:00:00Z' names no day"},
      {{"list", "--queue", "a b"}, "queue name 'a b' is not allowed"},
      {{"list", "-o", "xml"}, "--output: 'xml' is unknown; use table, wide, json or jsonl"},
      {{"list", "--timeout", "5"}, "--timeout: duration '5' has no unit"},
      {{"enqueue", "--timeout", "0", "x"}, "--timeout: 0 would give up before any answer"},
      {{"enqueue", "--in", "90", "x"}, "--in: duration '90' has no unit"},
      {{"enqueue", "--at", "tomorrow", "x"}, "--at: time 'tomorrow' has no hour"},
      {{"enqueue", "--in", "1s", "--at", "2027-01-01T09:00:00Z"}, "both --in and --at"},
      {{"enqueue", "--priority", "4294967296"}, "--priority: '4294967296' is no whole number"},
      {{"enqueue", "--key", ""}, "key has 0 bytes"},
      {{"enqueue", "--key=", "x"}, "key has 0 bytes"},
      {{"enqueue", "--queue=", "--in", "1h", "x"}, "queue name has 0 bytes"},
      {{"list", "--limit=", "-q"}, "--limit: '' is no whole number"},
      {{"enqueue", "--file", "/nonexistent"}, "cannot read payload file '/nonexistent'"},
      {{"enqueue", "--file", "/tmp"}, "cannot read payload file '/tmp'; name a file"},
      {{"enqueue", "--file", "a", "b"}, "both PAYLOAD and --file"},
      {{"cancel"}, "no job is named"},
      {{"cancel", "order:1"}, "job id 'order:1' is no positive whole number"},
      {{"cancel", "9007199254740992"}, "no job id '9007199254740992'; they end at"},
      {{"cancel", "99999999999999999999"}, "they end at 9007199254740991"},
      {{"cancel", "1", "--key", "k"}, "ids and --key are both given"},
      {{"cancel", "1", "--queue", "q"}, "--queue goes with --key"},
      {{"cancel", "--queue", "q"}, "give --yes"},
      {{"show", "--queue", "q"}, "--queue goes with --key"},
      {{"show", "1", "2", "--payload"}, "--payload takes one job"},
      {{"reschedule", "1"}, "nothing to change"},
      {{"ack"}, "no lease is named"},
      {{"ack", "42"}, "lease token '42' is malformed"},
      {{"lease", "--count", "0"}, "--count: '0' is no whole number from 1 to 1000"},
      {{"work"}, "nothing is said about handling jobs"},
      {{"work", "--exec", "/nonexistent/x"}, "cannot run '/nonexistent/x': there is no such"},
      {{"work", "--exec", "no-such-program"}, "there is no such program in PATH; check"},
      {{"work", "--exec", "sleep 1"}, "words of their own"},
      {{"work", "--exec", "/tmp"}, "cannot run '/tmp': it is not a file"},
      {{"work", "--exec", "/etc/passwd"}, "'/etc/passwd': it is not executable"},
      {{"work", "--concurrency", "0", "--exec", "cat"},
       "--concurrency: '0' is no whole number from 1"},
      {{"work", "--handler-timeout", "0", "--exec", "cat"}, "leave it out for no limit"},
      {{"work", "--handler-timeout", "0", "--webhook", "http://x/"}, "give it a longer time"},
      {{"work", "--count", "0", "--exec", "cat"}, "--count: '0' is no whole number from 1"},
      {{"kick", "--queue", "q", "--count", "0"}, "--count: '0' is no whole number from 1"},
      {{"import", "/nonexistent"}, "cannot read '/nonexistent'"},
      {{"import", "/tmp"}, "cannot read '/tmp': it is a directory"},
      {{"import", "--batch", "0"}, "--batch: '0' is no whole number from 1"},
      {{"import", "--batch", "1001"}, "--batch: '1001' is no whole number from 1 to 1000"}};
  for (const auto& [args, message] : cases) {
    const Outcome outcome = Ctl(args);
    EXPECT_EQ(outcome.code, 2) << args.front();
    EXPECT_THAT(outcome.err, AllOf(StartsWith("delayctl: "), HasSubstr(message)));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.requests.empty()) << message;
  }
}

TEST(CommandLineTest, GlobalOptionsStandBeforeOrBehindTheVerb) {
  const auto daemon = [](const Request&) { return Ok(R"({"status":"ok","version":"9"})"); };
  for (const auto& args : {std::vector<std::string>{"-o", "json", "--server", "unix:/x", "ping"},
                           {"ping", "--server=unix:/x", "-ojson"},
                           {"--server", "unix:/x", "ping", "--output", "json"}}) {
    const Outcome outcome = Ctl(args, {.daemon = daemon});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.server, "unix:/x");
    EXPECT_THAT(outcome.out, StartsWith(R"({"status":"ok","version":"9","round_trip_us":)"));
  }
}

TEST(CommandLineTest, TheServerIsTheFlagThenTheEnvironmentThenTheDefault) {
  EXPECT_EQ(Ctl({"ping", "-s", "unix:/flag"}, {.environment_server = "unix:/env"}).server,
            "unix:/flag");
  EXPECT_EQ(Ctl({"ping"}, {.environment_server = "unix:/env"}).server, "unix:/env");
  EXPECT_EQ(Ctl({"ping"}).server, "unix:/run/delayd/delayd.sock");
}

TEST(CommandLineTest, TheTimeoutReachesTheClient) {
  EXPECT_EQ(Ctl({"ping"}).requests.at(0).timeout, Millis(5000));
  EXPECT_EQ(Ctl({"ping", "--timeout", "1s"}).requests.at(0).timeout, Millis(1000));
}

TEST(CommandLineTest, ErrorsAreProblemsWhereJsonWasAskedFor) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"list", "--limt", "3", "-o", "json"},
                                             {"-ojsonl", "lst"},
                                             {"--output=json", "list", "--limit"}}) {
    const Outcome misread = Ctl(args);
    EXPECT_EQ(misread.code, 2);
    EXPECT_THAT(misread.err, ::testing::StartsWith(R"({"type":)"));
  }
  const Outcome outcome = Ctl({"show", "7", "-o", "json"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr(R"("code":"not_found","detail":"no such thing")"));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace delayd::cli

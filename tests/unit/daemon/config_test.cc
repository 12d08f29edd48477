#include "daemon/config.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/size_text.h"
#include "daemon/config_values.h"

namespace delayd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> ErrorsOf(const std::string& yaml) {
  ConfigReader reader;
  reader.ReadFile("delayd.yaml", yaml);
  reader.Finish();
  return reader.errors();
}

TEST(ConfigTest, EmptyFileMeansDefaults) {
  EXPECT_THAT(ErrorsOf(""), IsEmpty());
  EXPECT_THAT(ErrorsOf("# nothing but a comment\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("api:\nlog:\n"), IsEmpty());
}

TEST(ConfigTest, EveryValueOfTheFileArrives) {
  ConfigReader reader;
  reader.ReadFile("delayd.yaml",
                  "data_dir: /srv/delayd\n"
                  "api: { socket: /srv/d.sock, listen: '127.0.0.1:11380' }\n"
                  "log: { level: debug, format: json }\n"
                  "memory: { horizon: 5m, budget: 1GiB }\n"
                  "limits: { payload: 64KiB, connections: 10, idle: 1m }\n"
                  "defaults:\n"
                  "  lease: 30s\n"
                  "  max_attempts: 0\n"
                  "  backoff: { initial: 2s, factor: 1.5, max: 10m }\n");
  reader.Finish();
  EXPECT_THAT(reader.errors(), IsEmpty());
  const Config& config = reader.config();
  EXPECT_EQ(config.data_dir, "/srv/delayd");
  EXPECT_EQ(config.api.listen, "127.0.0.1:11380");
  EXPECT_EQ(config.log.level, log::Level::kDebug);
  EXPECT_EQ(config.log.format, log::Format::kJson);
  EXPECT_EQ(config.memory.horizon, std::chrono::minutes(5));
  EXPECT_EQ(config.memory.budget, uint64_t{1} << 30);
  EXPECT_EQ(config.limits.payload, 65536U);
  EXPECT_EQ(config.limits.connections, 10U);
  EXPECT_EQ(config.defaults.max_attempts, 0U);
  EXPECT_EQ(config.defaults.backoff.factor, 1.5);
  EXPECT_EQ(config.defaults.backoff.max, std::chrono::minutes(10));
}

TEST(ConfigTest, MaxAttemptsMayBeAsManyAsAJobMaySay) {
  ConfigReader reader;
  reader.ReadFile("delayd.yaml", "defaults: { max_attempts: 4294967295 }\n");
  reader.Finish();
  EXPECT_THAT(reader.errors(), IsEmpty());
  EXPECT_EQ(reader.config().defaults.max_attempts, UINT32_MAX);
}

TEST(ConfigTest, AQueueHasTheDefaultsAndWhatItSaysItself) {
  ConfigReader reader;
  reader.ReadFile(
      "delayd.yaml",
      "queues:\n"
      "  mail.out: { rate: 100/m, burst: 5, concurrency: 3, backoff: { jitter: 0.5 } }\n"
      "  orders:\n"
      "    lease: 10s\n"
      "defaults: { max_attempts: 7 }\n");
  reader.Finish();
  EXPECT_THAT(reader.errors(), IsEmpty());
  const engine::QueueSettings& mail = reader.config().queues.at("mail.out");
  EXPECT_EQ(mail.rate, (engine::RateCap{.count = 100, .per = Millis(60'000), .burst = 5}));
  EXPECT_EQ(mail.concurrency, 3U);
  EXPECT_EQ(mail.backoff.jitter, 0.5);
  EXPECT_EQ(mail.max_attempts, 7U);
  EXPECT_EQ(reader.config().queues.at("orders").lease, std::chrono::seconds(10));
  EXPECT_EQ(reader.config().defaults.concurrency, 0U);
}

TEST(ConfigTest, MistakesInAQueueAreNamedWithTheirPlace) {
  EXPECT_THAT(ErrorsOf("queues:\n  orders: { leese: 1m }\n"),
              ElementsAre("delayd.yaml:2:13: queues.orders: unknown key 'leese'; did you mean "
                          "'lease'?"));
  EXPECT_THAT(ErrorsOf("queues:\n  orders: { rate: fast }\n"),
              ElementsAre(HasSubstr("delayd.yaml:2:19: queues.orders.rate: expected a number of")));
  EXPECT_THAT(ErrorsOf("queues:\n  -x: { lease: 1m }\n"), ElementsAre(HasSubstr("queue name")));
  EXPECT_THAT(ErrorsOf("queues:\n  a: { backoff: { initial: 1h, max: 1m } }\n"),
              ElementsAre("delayd.yaml:2:28: queues.a.backoff.initial: must not exceed "
                          "backoff.max, which is 1m; it is 1h"));
  EXPECT_THAT(ErrorsOf("queues:\n  a: { backoff: { max: 500ms } }\n"),
              ElementsAre("delayd.yaml:2:24: queues.a.backoff.initial: must not exceed "
                          "backoff.max, which is 500ms; it is 1s"));
}

TEST(ConfigTest, AQueueMayHaveNoRateWhereOthersHaveOne) {
  ConfigReader reader;
  reader.ReadFile("delayd.yaml", "defaults: { rate: 100/m }\nqueues: { free: { rate: 0 } }\n");
  reader.Finish();
  EXPECT_THAT(reader.errors(), IsEmpty());
  EXPECT_EQ(reader.config().defaults.rate.count, 100U);
  EXPECT_EQ(reader.config().queues.at("free").rate.count, 0U);
}

TEST(ConfigTest, TheSettingsOfAQueueHaveTheirRanges) {
  for (const std::string value : {"lease: 7d",
                                  "key_retention: 366d",
                                  "backoff: { initial: 1d, max: 366d, factor: 100, jitter: 1 }",
                                  "rate: 1000000/1d",
                                  "rate: 1/1ms"}) {
    EXPECT_THAT(ErrorsOf("defaults: { " + value + " }\n"), IsEmpty()) << value;
  }
  for (const std::string value : {"lease: 8d",
                                  "key_retention: 367d",
                                  "backoff: { max: 367d }",
                                  "backoff: { factor: 101 }",
                                  "backoff: { jitter: 1.5 }",
                                  "rate: 1000001/1d",
                                  "rate: 1/2d",
                                  "rate: 1/0ms",
                                  "rate: many/s",
                                  "rate: 0/s"}) {
    EXPECT_THAT(ErrorsOf("defaults: { " + value + " }\n"), ElementsAre(HasSubstr("expected a")))
        << value;
  }
}

TEST(ConfigTest, UnknownKeyIsAnErrorWithItsPlaceAndTheNearestName) {
  EXPECT_THAT(ErrorsOf("log:\n  levle: info\n"),
              ElementsAre("delayd.yaml:2:3: unknown key 'log.levle'; did you mean 'log.level'?"));
  EXPECT_THAT(ErrorsOf("storage:\n  foo: 1\n"),
              ElementsAre("delayd.yaml:2:3: unknown key 'storage.foo'; 'delayd --help' lists the "
                          "known ones"))
      << "not the section itself";
  EXPECT_THAT(ErrorsOf("data_dri: /x\n"),
              ElementsAre("delayd.yaml:1:1: unknown key 'data_dri'; did you mean 'data_dir'?"));
  EXPECT_THAT(ErrorsOf("stroage: { reserve: 1GiB }\n"),
              ElementsAre(HasSubstr("did you mean 'storage'?")));
  EXPECT_THAT(ErrorsOf("queue: { a: { lease: 1m } }\n"),
              ElementsAre(HasSubstr("did you mean 'queues'?")));
  EXPECT_THAT(ErrorsOf("zzzzzzzz: 1\n"),
              ElementsAre("delayd.yaml:1:1: unknown key 'zzzzzzzz'; 'delayd --help' lists the "
                          "known ones"));
}

TEST(ConfigTest, DuplicateKeyIsAnErrorAtTheSecondPlace) {
  EXPECT_THAT(ErrorsOf("data_dir: /a\ndata_dir: /b\n"),
              ElementsAre("delayd.yaml:2:1: 'data_dir' is set a second time; remove one of the "
                          "two"));
  EXPECT_THAT(ErrorsOf("log: { level: info, level: warn }\n"),
              ElementsAre(StartsWith("delayd.yaml:1:21: 'log.level' is set a second time")));
}

TEST(ConfigTest, WrongTypesAreErrorsAtTheValue) {
  EXPECT_THAT(ErrorsOf("log: info\n"),
              ElementsAre("delayd.yaml:1:6: log: expected a section with keys of its own, found "
                          "'info'"));
  EXPECT_THAT(ErrorsOf("data_dir: [a, b]\n"),
              ElementsAre("delayd.yaml:1:11: data_dir: expected one value (PATH), found a list"));
  EXPECT_THAT(ErrorsOf("access: { admin: [alice] }\n"),
              ElementsAre("delayd.yaml:1:18: access.admin: expected one value (such as \"alice, "
                          "@ops\"), found a list"));
  EXPECT_THAT(ErrorsOf("data_dir:\n"),
              ElementsAre("delayd.yaml:1:1: data_dir: expected one value (PATH), found nothing"));
  EXPECT_THAT(ErrorsOf("[data_dir]: /a\n"), ElementsAre("delayd.yaml:1:1: expected a plain key"));
  EXPECT_THAT(ErrorsOf("queues: { a: 1m }\n"),
              ElementsAre("delayd.yaml:1:14: queues.a: expected settings of its own"));
  EXPECT_THAT(ErrorsOf("- data_dir\n"),
              ElementsAre("delayd.yaml:1:1: expected 'key: value' lines"));
}

TEST(ConfigTest, ValuesOutOfRangeAreErrorsAtTheValue) {
  EXPECT_THAT(ErrorsOf("limits:\n  connections: 0\n"),
              ElementsAre("delayd.yaml:2:16: limits.connections: expected a whole number from 1 to "
                          "1000000, found '0'"));
  EXPECT_THAT(ErrorsOf("limits: { payload: 65MiB }\n"),
              ElementsAre(StartsWith("delayd.yaml:1:20: limits.payload: expected a size from 1B "
                                     "to 64MiB")));
  EXPECT_THAT(ErrorsOf("memory: { horizon: 10 }\n"),
              ElementsAre(StartsWith("delayd.yaml:1:20: memory.horizon: ")));
  EXPECT_THAT(ErrorsOf("log: { level: verbose }\n"),
              ElementsAre("delayd.yaml:1:15: log.level: expected debug, info, warn or error, found "
                          "'verbose'"));
}

TEST(ConfigTest, AllErrorsAreToldAtOnce) {
  EXPECT_THAT(ErrorsOf("log: { level: loud }\nnope: 1\nmemory: { budget: lots }\n"),
              ElementsAre(StartsWith("delayd.yaml:1:15: "),
                          StartsWith("delayd.yaml:2:1: "),
                          StartsWith("delayd.yaml:3:19: ")));
}

TEST(ConfigTest, SyntaxErrorNamesItsPlace) {
  EXPECT_THAT(ErrorsOf("log: { level: info\n"), ElementsAre(StartsWith("delayd.yaml:2:1: ")));
  EXPECT_THAT(ErrorsOf("data_dir: /a\n\tlog: x\n"), ElementsAre(StartsWith("delayd.yaml:2:")));
}

TEST(ConfigTest, SecondDocumentIsAnErrorAndNotSilentlyDropped) {
  EXPECT_THAT(ErrorsOf("data_dir: /a\n---\nlog: { level: info }\n"),
              ElementsAre(HasSubstr("a second document begins")));
}

TEST(ConfigTest, ATextThatIsNoYamlIsRefusedAndReadToItsEnd) {
  for (const std::string yaml : {",a", ",", "}", "]"}) {
    EXPECT_THAT(ErrorsOf(yaml), ElementsAre(StartsWith("delayd.yaml:1:"))) << yaml;
  }
}

const std::string kTls = "tls: { certificate: /etc/c.pem, key: /etc/k.pem }\n";
const std::string kTlsAndTokens = kTls + "access: { token_file: /etc/tokens }\n";

TEST(ConfigTest, BeanstalkListensOnLoopbackOnly) {
  EXPECT_THAT(ErrorsOf("beanstalk: { listen: 127.0.0.1:11300, socket: /run/b.sock }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("beanstalk:\n  listen: 0.0.0.0:11300\n" + kTlsAndTokens),
              ElementsAre(HasSubstr("no login")))
      << "TLS and tokens do not help a protocol that knows neither";
}

TEST(ConfigTest, BeanstalkOverTcpIsRefusedWhereNobodyMaySpeakIt) {
  const std::string listen = "beanstalk: { listen: 127.0.0.1:11300 }\n";
  EXPECT_THAT(ErrorsOf(listen + "access: { token_file: /etc/tokens }\n"),
              ElementsAre(AllOf(StartsWith("delayd.yaml:1:22: beanstalk.listen: every beanstalk"),
                                HasSubstr("asks all who come over TCP for a token"),
                                HasSubstr("use beanstalk.socket"))));
  for (const std::string others : {"read", "none"}) {
    EXPECT_THAT(ErrorsOf(listen + "access: { others: " + others + " }\n"),
                ElementsAre(HasSubstr("access.others is less than enqueue")));
  }
  EXPECT_THAT(ErrorsOf(listen + "access: { others: enqueue }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("beanstalk: { socket: /run/b.sock }\naccess: { token_file: /etc/t }\n"),
              IsEmpty());
}

TEST(ConfigTest, ListeningBeyondLoopbackNeedsTlsAndTokens) {
  const std::string anywhere = "api: { listen: '0.0.0.0:11380' }\n";
  const auto refused = ElementsAre(HasSubstr("'0.0.0.0:11380' can be reached from other machines"));
  EXPECT_THAT(ErrorsOf(anywhere), refused);
  EXPECT_THAT(ErrorsOf(anywhere + kTls), refused);
  EXPECT_THAT(ErrorsOf(anywhere + "access: { token_file: /etc/tokens }\n"), refused);
  EXPECT_THAT(ErrorsOf(anywhere + kTlsAndTokens), IsEmpty());
  EXPECT_THAT(ErrorsOf("api: { listen: '[::]:11380' }\n"),
              ElementsAre(HasSubstr("can be reached from other machines")));
  EXPECT_THAT(ErrorsOf("api: { listen: '[::]:11380' }\n" + kTlsAndTokens), IsEmpty());
  EXPECT_THAT(ErrorsOf("api: { listen: '[::1]:11380' }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("api: { listen: 'localhost:11380' }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("api: { listen: '11380' }\n"),
              ElementsAre(HasSubstr("expected ADDRESS:PORT such as 127.0.0.1:11380")));
  EXPECT_THAT(ErrorsOf("beanstalk: { listen: foo }\n"),
              ElementsAre(HasSubstr("expected ADDRESS:PORT such as 127.0.0.1:11300")));
  EXPECT_THAT(ErrorsOf("beanstalk: { listen: 'foo:1' }\n"),
              ElementsAre(HasSubstr("such as 127.0.0.1:11300 or [::1]:11300")));
}

TEST(ConfigTest, ACertificateAndItsKeyComeTogether) {
  EXPECT_THAT(ErrorsOf("tls: { certificate: /etc/c.pem }\n"), ElementsAre(HasSubstr("set both")));
  EXPECT_THAT(ErrorsOf("tls: { key: /etc/k.pem }\n"), ElementsAre(HasSubstr("set both")));
  EXPECT_THAT(ErrorsOf(kTls), IsEmpty());
}

TEST(ConfigTest, RelationsBetweenKeysAreChecked) {
  EXPECT_THAT(ErrorsOf("api: { socket: '' }\n"),
              ElementsAre(HasSubstr("both api.socket and api.listen are empty")));
  EXPECT_THAT(
      ErrorsOf("defaults: { backoff: { initial: 2h } }\n"),
      ElementsAre(StartsWith("delayd.yaml:1:33: defaults.backoff.initial: must not exceed")));
  EXPECT_THAT(ErrorsOf("limits: { payload: 64MiB }\n"),
              ElementsAre(StartsWith(
                  "delayd.yaml:1:20: limits.request_body: a job with the largest payload")));
  EXPECT_THAT(ErrorsOf("limits: { payload: 3MiB, request_body: 4112KiB }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("limits: { payload: 3MiB, request_body: 4111KiB }\n"),
              ElementsAre(HasSubstr("in base64 needs 4112KiB")));
  EXPECT_THAT(ErrorsOf("defaults: { backoff: { initial: 1m, max: 1m } }\n"), IsEmpty());
  EXPECT_THAT(ErrorsOf("limits: { request_header: 4KiB }\n"),
              ElementsAre("delayd.yaml:1:27: limits.request_line: must not exceed "
                          "limits.request_header, which is 4KiB; it is 8KiB"));
  EXPECT_THAT(ErrorsOf("defaults: { backoff: { max: 500ms } }\nqueues: { a: { lease: 1m } }\n"),
              ElementsAre("delayd.yaml:1:29: defaults.backoff.initial: must not exceed "
                          "backoff.max, which is 500ms; it is 1s"))
      << "once, and not of the queue too, which says nothing of it";
}

TEST(ConfigTest, ATabInTheIndentIsNamed) {
  EXPECT_THAT(
      ErrorsOf("api:\n\tsocket: /run/d.sock\n"),
      ElementsAre("delayd.yaml:2:8: this is no YAML: illegal map value; a line begins with a "
                  "tab, indent with spaces"));
  EXPECT_THAT(ErrorsOf("api: { socket: '/run/d.sock\n"),
              ElementsAre(::testing::Not(HasSubstr("a tab"))));
}

TEST(ConfigTest, BytesThatAreNoUtf8AreNotReplacedByOthers) {
  EXPECT_THAT(ErrorsOf("log:\n  level: debug\ndata_dir: \"/srv/\xff\"\n"),
              ElementsAre("delayd.yaml:3:17: this is no UTF-8; save the file as UTF-8"));
}

TEST(ConfigTest, TwoProtocolsDoNotShareAnAddress) {
  EXPECT_THAT(
      ErrorsOf("api: { socket: /run/d.sock }\nbeanstalk: { socket: /run/d.sock }\n"),
      ElementsAre(StartsWith("delayd.yaml:2:22: beanstalk.socket: it is that of api.socket")));
  EXPECT_THAT(
      ErrorsOf("api: { listen: 'localhost:11380' }\nbeanstalk: { listen: 127.0.0.1:11380 }\n"),
      ElementsAre(StartsWith("delayd.yaml:2:22: beanstalk.listen: it is that of api.listen")));
  EXPECT_THAT(
      ErrorsOf("api: { listen: '[::1]:11380' }\nbeanstalk: { listen: '[0:0::1]:11380' }\n"),
      ElementsAre(StartsWith("delayd.yaml:2:22: beanstalk.listen: it is that of api.listen")))
      << "one address, spelled in two ways";
  EXPECT_THAT(ErrorsOf("api: { listen: '127.0.0.1:0' }\nbeanstalk: { listen: '127.0.0.1:0' }\n"),
              IsEmpty())
      << "any free port: they get two";
  EXPECT_THAT(ErrorsOf("api: { listen: '[::1]:11380' }\nbeanstalk: { listen: 127.0.0.1:11380 }\n"),
              IsEmpty());
}

// Every key but those of queues and the log's level, which a reload applies.
TEST(ConfigTest, EveryKeyThatNeedsARestartIsNamedWhenItChanges) {
  const std::map<std::string_view, std::string_view> others = {
      {"data_dir", "/srv/d"},
      {"storage.reserve", "1GiB"},
      {"api.socket", "/run/other.sock"},
      {"api.listen", "127.0.0.1:1"},
      {"tls.certificate", "/etc/c.pem"},
      {"tls.key", "/etc/k.pem"},
      {"beanstalk.listen", "127.0.0.1:2"},
      {"beanstalk.socket", "/run/b.sock"},
      {"log.format", "json"},
      {"log.slow_turn", "1s"},
      {"log.slow_commit", "2s"},
      {"memory.horizon", "1m"},
      {"memory.budget", "1GiB"},
      {"processors.awake", "20ms"},
      {"access.read", "alice"},
      {"access.enqueue", "alice"},
      {"access.admin", "alice"},
      {"access.others", "none"},
      {"access.token_file", "/etc/tokens"},
      {"clock.max_jump", "1d"},
      {"clock.hold_max", "2h"},
      {"metrics.queues", "7"},
      {"health.commit_stuck", "1m"},
      {"limits.payload", "2MiB"},
      {"limits.request_line", "4KiB"},
      {"limits.request_header", "32KiB"},
      {"limits.request_body", "64MiB"},
      {"limits.connections", "7"},
      {"limits.jobs_per_user", "7"},
      {"limits.idle", "1m"},
  };
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.of_queue != nullptr || key.name == "log.level") {
      EXPECT_EQ(key.same, nullptr) << key.name;
      continue;
    }
    const auto other = others.find(key.name);
    ASSERT_NE(other, others.end()) << key.name << ": give this test another value of it";
    ConfigReader reader;
    reader.Set(key, other->second, "here");
    EXPECT_THAT(KeysForRestart(Config(), reader.config()), ElementsAre(key.name));
  }
  ConfigReader reader;
  reader.ReadFile("delayd.yaml", "log: { level: debug, format: text }\ndefaults: { lease: 5s }\n");
  EXPECT_THAT(KeysForRestart(Config(), reader.config()), IsEmpty());
}

TEST(ConfigTest, SocketPathThatTheKernelCannotHoldIsRefused) {
  EXPECT_THAT(ErrorsOf("api: { socket: /" + std::string(107, 'a') + " }\n"),
              ElementsAre(HasSubstr("a socket path has at most 107 bytes, this one has 108")));
}

TEST(ConfigValuesTest, SizesReadWhatTheyWrite) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{1024}, uint64_t{1536}, uint64_t{3} << 30}) {
    const StatusOr<uint64_t> read = ParseSize(FormatSize(size), 0, uint64_t{1} << 50);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, size);
  }
}

TEST(ConfigValuesTest, SizeThatOverflowsIsOutOfRange) {
  EXPECT_FALSE(ParseSize("18446744073709551615TiB", 0, ~uint64_t{0}).ok());
  EXPECT_FALSE(ParseSize("99999999999999999999", 0, ~uint64_t{0}).ok());
  EXPECT_FALSE(ParseSize("-1", 0, 10).ok());
  EXPECT_FALSE(ParseSize("", 0, 10).ok());
  EXPECT_FALSE(ParseSize("10MB", 0, ~uint64_t{0}).ok());
}

TEST(ConfigValuesTest, BothEndsOfARangeAreInIt) {
  EXPECT_TRUE(ParseFactor("1", 1, 100).ok());
  EXPECT_TRUE(ParseFactor("100", 1, 100).ok());
  EXPECT_TRUE(ParseSize("1KiB", 1024, 2048).ok());
  EXPECT_TRUE(ParseSize("2KiB", 1024, 2048).ok());
  EXPECT_TRUE(ParseCount("1", 1, 3).ok());
  EXPECT_TRUE(ParseCount("3", 1, 3).ok());
  EXPECT_TRUE(ParseListenAddress("127.0.0.1:65535").ok());
  EXPECT_FALSE(ParseListenAddress("127.0.0.1:65536").ok());
}

TEST(ConfigValuesTest, FactorIsAFiniteNumberInRange) {
  EXPECT_FALSE(ParseFactor("2x", 1, 100).ok());
  EXPECT_TRUE(ParseFactor("2", 1, 100).ok());
  EXPECT_FALSE(ParseFactor("nan", 1, 100).ok());
  EXPECT_FALSE(ParseFactor("inf", 1, 100).ok());
  EXPECT_FALSE(ParseFactor("0.5", 1, 100).ok());
}

}  // namespace
}  // namespace delayd

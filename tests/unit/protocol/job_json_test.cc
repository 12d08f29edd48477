#include "protocol/job_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPayloadMax = 1000;

JobSpec Parse(std::string_view json) {
  StatusOr<JobSpec> spec = ParseJobSpec(json, kPayloadMax);
  EXPECT_TRUE(spec.ok()) << json << ": " << spec.status().message();
  return spec.ok() ? std::move(spec).value() : JobSpec{};
}

Status Refused(std::string_view json) {
  return ParseJobSpec(json, kPayloadMax).status();
}

TEST(JobSpecJsonTest, AnEmptyObjectIsAnEmptyJobDueNow) {
  const JobSpec spec = Parse("{}");
  EXPECT_EQ(spec.queue, "default");
  EXPECT_EQ(std::get<DueAfter>(spec.due).delay, Millis(0));
  EXPECT_EQ(spec.payload, "");
  EXPECT_EQ(spec.key, "");
  EXPECT_FALSE(spec.priority.has_value());
}

TEST(JobSpecJsonTest, ReadsEveryMember) {
  const JobSpec spec = Parse(
      R"({"queue":"orders","delay":"30m","payload":"x","key":"order:1","priority":7,"lease":"60s",)"
      R"("max_attempts":3,"expires_after":"1h"})");
  EXPECT_EQ(spec.queue, "orders");
  EXPECT_EQ(std::get<DueAfter>(spec.due).delay, std::chrono::minutes(30));
  EXPECT_EQ(spec.payload, "x");
  EXPECT_EQ(spec.key, "order:1");
  EXPECT_EQ(spec.priority, 7U);
  EXPECT_EQ(spec.lease, Millis(60'000));
  EXPECT_EQ(spec.max_attempts, 3U);
  EXPECT_EQ(spec.expires_after, std::chrono::hours(1));
}

TEST(JobSpecJsonTest, DueIsAbsolute) {
  const JobSpec spec = Parse(R"({"due":"2027-01-01T09:00:00+08:00"})");
  EXPECT_EQ(ToMillis(std::get<DueAt>(spec.due).at), 1'798'765'200'000);
}

TEST(JobSpecJsonTest, NullIsAsGoodAsAbsent) {
  const JobSpec spec = Parse(
      R"({"queue":null,"delay":"5s","due":null,"key":null,"priority":null,"lease":null,"max_attempts":null})");
  EXPECT_EQ(spec.queue, "default");
  EXPECT_EQ(std::get<DueAfter>(spec.due).delay, Millis(5000));
  EXPECT_FALSE(spec.priority.has_value());
  EXPECT_FALSE(spec.lease.has_value());
  EXPECT_EQ(Parse(R"({"payload":"x","payload_base64":null,"history":null})").payload, "x");
}

// It would be due at once.
TEST(JobSpecJsonTest, P2ANullAsTheOnlyDueTimeIsRefused) {
  for (const std::string_view json : {R"({"due":null})", R"({"delay":null})"}) {
    const Status status = ParseJobSpec(json, kPayloadMax).status();
    EXPECT_THAT(status.message(), HasSubstr("is null; say when the job is due"));
    EXPECT_EQ(status.reason(), "invalid_member");
  }
}

TEST(JobSpecJsonTest, APayloadThatIsNoStringIsItsOwnText) {
  EXPECT_EQ(Parse(R"({"payload": {"order_id": 1001, "big": 12345678901234567890123} })").payload,
            R"({"order_id": 1001, "big": 12345678901234567890123})");
  EXPECT_EQ(Parse(R"({"payload":[1, 2]})").payload, "[1, 2]");
  EXPECT_EQ(Parse(R"({"payload":1.50})").payload, "1.50");
  EXPECT_EQ(Parse(R"({"payload":null})").payload, "null");
  EXPECT_EQ(Parse(R"({"payload":"{\"a\":1}"})").payload, R"({"a":1})");
  EXPECT_EQ(Parse(R"({"payload":"a\u0000b"})").payload, std::string("a\0b", 3));
}

TEST(JobSpecJsonTest, WrongMembersAreNamedWithTheCure) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"dealy":"5s"})", "member 'dealy': is unknown; did you mean 'delay'?"},
      {R"({"topic":"a"})", "member 'topic': is unknown; the members are queue, delay, due"},
      {R"({"delay":"5s","due":"2027-01-01T09:00:00Z"})",
       "members 'delay' and 'due': both are given"},
      {R"({"delay":"5s","delay":"6s"})", "member 'delay': stands twice"},
      {R"({"delay":90})", "member 'delay': is the number 90; write a string with a unit"},
      {R"({"delay":"90"})", "member 'delay': duration '90' has no unit"},
      {R"({"delay":true})", "member 'delay': is true or false; write a string"},
      {R"({"due":"tomorrow"})", "member 'due': time 'tomorrow' is not understood"},
      {R"({"due":17})", "member 'due': is the number 17; write a string like \"2027-01-01T09"},
      {R"({"priority":-1})", "member 'priority': is -1; write a whole number from 0 to 4294967295"},
      {R"({"priority":"7"})", "member 'priority': is a string"},
      {R"({"max_attempts":4294967296})", "member 'max_attempts': is 4294967296"},
      {R"({"key":7})", "member 'key': is a number; write a string"},
      {R"({"key":""})", "member 'key': key has 0 bytes"},
      {R"({"key":"a\nb"})", "member 'key': key 'a\\x0ab' has control characters"},
      {R"({"queue":"a b"})", "member 'queue': queue name 'a b' is not allowed"},
      {R"({"queue":["a"]})", "member 'queue': is an array"},
      {R"({"payload":"a","payload_base64":"YQ=="})", "payload or payload_base64"},
      {R"({"payload_base64":"Y"})", "member 'payload_base64': base64 text"},
      {R"({"payload_base64":7})", "member 'payload_base64': is a number"},
      {R"([])", "malformed JSON: it is an array, not an object"},
      {R"(null)", "malformed JSON: it is null, not an object"},
      {R"(false)", "malformed JSON: it is true or false, not an object"},
      {R"(name,delay)", "malformed JSON: 'name' is no JSON value"},
      {R"(not json)", "malformed JSON: 'not' is no JSON value"},
      {R"(tube: orders)", "malformed JSON: 'tube' is no JSON value"},
      {R"({"payload":)", "malformed JSON"}};
  for (const auto& [json, message] : cases) {
    const Status status = Refused(json);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

TEST(JobSpecJsonTest, APayloadAtTheLimitPassesAndOneByteMoreIsRefused) {
  EXPECT_EQ(Parse("{\"payload\":\"" + std::string(kPayloadMax, 'x') + "\"}").payload.size(),
            kPayloadMax);
  const Status status = Refused("{\"payload\":\"" + std::string(kPayloadMax + 1, 'x') + "\"}");
  EXPECT_EQ(status.reason(), "payload_too_large");
  EXPECT_THAT(status.message(), HasSubstr("payload has 1001 bytes and the limit is 1000B"));
}

// Looking into it would hold everybody up for as long as it is.
TEST(JobSpecJsonTest, ATextThatCanHoldNoPayloadWithinTheLimitIsNotRead) {
  const std::string escaped(kPayloadMax, '\0');
  JobSpec spec;
  spec.payload = escaped;
  EXPECT_EQ(Parse(JobSpecToJson(spec)).payload, escaped);
  const Status status = Refused("{\"no_member\":[" + std::string(kPayloadMax * 6 + 64 * 1024, ' '));
  EXPECT_EQ(status.reason(), "payload_too_large");
  EXPECT_THAT(status.message(), HasSubstr("with a payload within the limit of 1000B"));
}

// limits.request_body has room for the largest payload in base64, and for no more.
TEST(JobSpecJsonTest, NoLongPayloadIsLongerThanInBase64) {
  constexpr size_t kBytes = size_t{1} << 20;
  for (const char byte : {'\0', '"', 'x'}) {
    JobSpec spec;
    spec.payload = std::string(kBytes, byte);
    const std::string json = JobSpecToJson(spec);
    EXPECT_LE(json.size(), kBytes / 3 * 4 + 100) << static_cast<int>(byte);
    EXPECT_EQ(json.find("base64") == std::string::npos, byte == 'x');
    EXPECT_EQ(ParseJobSpec(json, kBytes)->payload, spec.payload);
  }
}

TEST(JobSpecJsonTest, AnySpecReadsBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 2000; ++i) {
    JobSpec spec;
    spec.queue = "q" + std::to_string(random() % 10);
    spec.payload = RandomBytes(&random, 60);
    if (random() % 2 == 0) {
      spec.key = "key \xc3\xa4 \"" + std::to_string(random());
      spec.due = DueAt{WallFromMillis(static_cast<int64_t>(random() % limits::kWallMsMax))};
      spec.priority = static_cast<uint32_t>(random());
    } else {
      spec.due = DueAfter{Millis(static_cast<int64_t>(random() % limits::kDelayMsMax))};
      spec.lease = Millis(random() % 100'000);
      spec.max_attempts = static_cast<uint32_t>(random());
      spec.expires_after = Millis(random() % 100'000);
    }
    const std::string json = JobSpecToJson(spec);
    const JobSpec read = Parse(json);
    EXPECT_EQ(read.payload, spec.payload);
    EXPECT_EQ(read.key, spec.key);
    EXPECT_EQ(read.priority, spec.priority);
    EXPECT_EQ(read.due.index(), spec.due.index());
    EXPECT_EQ(JobSpecToJson(read), json);
  }
}

StatusOr<std::vector<JobSpec>> ParseLines(std::string_view ndjson, size_t jobs_max) {
  JobSpecLines lines;
  DELAYD_ASSIGN_OR_RETURN(const bool is_read,
                          lines.Read(ndjson, ndjson.size(), kPayloadMax, jobs_max));
  EXPECT_TRUE(is_read);
  return lines.TakeJobs();
}

TEST(JobSpecLinesTest, BlankLinesAreSkippedButCounted) {
  const auto specs = ParseLines("{\"key\":\"a\"}\n\n  \r\n{\"key\":\"b\"}\r\n", 10);
  ASSERT_TRUE(specs.ok()) << specs.status().message();
  ASSERT_EQ(specs->size(), 2U);
  EXPECT_EQ((*specs)[1].key, "b");
  EXPECT_THAT(ParseLines("{}\n\n{}\n{\"x\":1}", 10).status().message(),
              HasSubstr("line 4: member 'x': is unknown"));
}

TEST(JobSpecLinesTest, TooManyJobsAreRefused) {
  EXPECT_TRUE(ParseLines("{}\n{}\n", 2).ok());
  const auto specs = ParseLines("{}\n{}\n{}", 2);
  EXPECT_EQ(specs.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(specs.status().message(), HasSubstr("line 3: the request has more than 2 jobs"));
  EXPECT_TRUE(ParseLines("", 2)->empty());
}

TEST(JobSpecLinesTest, AreReadInStepsAsIfInOne) {
  const std::string text = "{\"key\":\"a\"}\n\n{\"key\":\"b\"}\n  \n{\"key\":\"c\"}\n{\"x\":1}";
  for (size_t step = 1; step < text.size(); ++step) {
    JobSpecLines lines;
    StatusOr<bool> is_read = false;
    size_t steps = 0;
    do {
      is_read = lines.Read(text, step, kPayloadMax, 10);
      ++steps;
    } while (is_read.ok() && !*is_read);
    EXPECT_THAT(is_read.status().message(), HasSubstr("line 6: member 'x': is unknown")) << step;
    EXPECT_LE(steps, text.size() / step + 1) << step;
    EXPECT_EQ(lines.TakeJobs().size(), 3U);
    EXPECT_EQ(steps == 1, step > text.rfind('{')) << step;
  }
}

// 32 MB of them took 0.1 s.
TEST(JobSpecLinesTest, BlankLinesAreReadInStepsToo) {
  const std::string text = "{\"key\":\"a\"}" + std::string(100, '\n') + "{\"x\":1}";
  JobSpecLines lines;
  for (size_t at = 20; at < text.rfind('{'); at += 20) {
    const StatusOr<bool> is_read = lines.Read(text, 20, kPayloadMax, 10);
    ASSERT_TRUE(is_read.ok()) << is_read.status().message();
    EXPECT_FALSE(*is_read);
  }
  EXPECT_THAT(lines.Read(text, 20, kPayloadMax, 10).status().message(),
              HasSubstr("line 101: member 'x': is unknown"));
}

JobView WholeJob() {
  JobView job;
  job.id = JobId{limits::kJobIdMax};
  job.queue = "orders";
  job.key = "order:1001";
  job.state = JobState::kLeased;
  job.due_kind = DueKind::kAbsolute;
  job.due = WallFromMillis(1'798'794'000'007);
  job.created = WallFromMillis(1'798'793'000'000);
  job.priority = 1024;
  job.lease = Millis(60'000);
  job.attempt = 2;
  job.max_attempts = 25;
  job.expires_after = std::chrono::hours(1);
  job.last_error = "exit 1\nno such order";
  job.payload = std::string("\xff\0x", 3);
  job.payload_bytes = 3;
  job.lease_token = LeaseToken{job.id, 3, 255};
  job.lease_expires = WallFromMillis(1'798'794'060'000);
  job.lateness = Millis(12);
  job.reserves = 2;
  job.releases = 1;
  job.history = {{.kind = JobEvent::Kind::kNacked,
                  .at = WallFromMillis(1'798'794'000'500),
                  .who = "w",
                  .what = "exit 1"}};
  return job;
}

TEST(JobJsonTest, WritesTheMembersOfTheDesign) {
  EXPECT_EQ(
      JobToJson(WholeJob()),
      R"({"id":9007199254740991,"queue":"orders","key":"order:1001","state":"leased",)"
      R"("due":"2027-01-01T09:00:00.007Z","due_kind":"absolute","created":"2027-01-01T08:43:20.000Z",)"
      R"("priority":1024,"lease":"1m","attempt":2,"max_attempts":25,"expires_after":"1h",)"
      R"("payload_base64":"/wB4","payload_bytes":3,"last_error":"exit 1\nno such order",)"
      R"("reserves":2,"releases":1,"history":[{"event":"nacked","at":"2027-01-01T09:00:00.500Z",)"
      R"("client":"w","error":"exit 1"}],)"
      R"("lease_token":"9007199254740991-3-ff","lease_expires":"2027-01-01T09:01:00.000Z","lateness_ms":12})");
}

TEST(JobJsonTest, AJobReadsBack) {
  for (const bool bare : {false, true}) {
    const JobView job = bare ? JobView{} : WholeJob();
    const std::string json = JobToJson(job);
    const auto read = ParseJob(json);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(JobToJson(*read), json);
    EXPECT_EQ(read->payload, job.payload);
  }
}

TEST(JobJsonTest, AFinishedJobSaysWhenAndHow) {
  JobView job;
  job.state = JobState::kFinished;
  job.finished = WallFromMillis(0);
  job.outcome = "acked";
  const auto read = ParseJob(JobToJson(job));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->state, JobState::kFinished);
  EXPECT_EQ(read->finished, WallFromMillis(0));
  EXPECT_EQ(read->outcome, "acked");
}

TEST(JobJsonTest, MembersOfANewerDaemonAreSkipped) {
  EXPECT_EQ(
      ToInt(ParseJob(R"({"id":7,"queue":"q","state":"dead","tags":{"a":[1]},"shade":"blue"})")->id),
      7U);
}

TEST(JobJsonTest, WrongAnswersAreNamed) {
  EXPECT_THAT(ParseJob(R"({"id":9007199254740992})").status().message(), HasSubstr("member 'id'"));
  EXPECT_THAT(ParseJob(R"({"state":"asleep"})").status().message(), HasSubstr("no state of a job"));
  EXPECT_THAT(ParseJob(R"({"lease_token":"x"})").status().message(),
              HasSubstr("member 'lease_token'"));
  EXPECT_THAT(ParseJob(R"({"id":null,"queue":"q","state":"dead"})").status().message(),
              HasSubstr("member 'id': is missing"));
}

TEST(JobJsonTest, PagesReadBack) {
  JobPage page;
  page.jobs = {WholeJob(), JobView{}};
  page.next_cursor = "c\"1";
  const auto read = ParseJobPage(JobPageToJson(page));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->jobs.size(), 2U);
  EXPECT_EQ(JobToJson(read->jobs[0]), JobToJson(page.jobs[0]));
  EXPECT_EQ(read->next_cursor, "c\"1");
  EXPECT_EQ(JobPageToJson({}), R"({"jobs":[]})");
}

TEST(JobJsonTest, EnqueuedJobsSayWhetherTheyExisted) {
  for (const bool existed : {false, true}) {
    const auto read = ParseEnqueued(EnqueuedToJson({WholeJob(), existed}));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->existed, existed);
    EXPECT_EQ(JobToJson(read->job), JobToJson(WholeJob()));
  }
}

TEST(JobJsonTest, WhatIsExportedCanBeImported) {
  const auto spec = ParseExportedJob(JobToJson(WholeJob()), kPayloadMax);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->key, "order:1001");
  EXPECT_EQ(spec->payload, std::string("\xff\0x", 3));
  EXPECT_EQ(std::get<DueAt>(spec->due).at, WholeJob().due);
  ASSERT_NE(spec->past, nullptr);
  EXPECT_EQ(spec->past->attempts, 1U) << "the hand-out under way does not count";
  EXPECT_EQ(spec->past->last_error, WholeJob().last_error);
  EXPECT_EQ(spec->past->created, WholeJob().created);
  EXPECT_EQ(spec->past->timeouts, WholeJob().timeouts);
  EXPECT_EQ(spec->past->releases, WholeJob().releases);
  EXPECT_EQ(spec->past->history, WholeJob().history);
  EXPECT_FALSE(spec->buried);
  EXPECT_FALSE(ParseExportedJob(R"({"dealy":"1s"})", kPayloadMax).ok());
  // Whatever that means, it is not "hand it out when it is due".
  EXPECT_THAT(ParseExportedJob(R"({"state":"asleep"})", kPayloadMax).status().message(),
              HasSubstr("no state of a job"));
}

TEST(JobJsonTest, AnExportCarriesWhatItsKeyStandsFor) {
  JobView job = WholeJob();
  job.lease_token.reset();
  job.fingerprint = 0x0123456789abcdef;
  const std::string json = JobToJson(job);
  EXPECT_THAT(json, HasSubstr(R"("fingerprint":"0123456789abcdef")"));
  EXPECT_EQ(ParseJob(json)->fingerprint, job.fingerprint);
  const auto spec = ParseExportedJob(json, kPayloadMax);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->past->fingerprint, job.fingerprint);
  EXPECT_EQ(ParseJobSpec(JobSpecToJson(*spec), kPayloadMax)->past->fingerprint, job.fingerprint);
  EXPECT_THAT(Refused(R"({"fingerprint":"12"})").message(),
              HasSubstr("is '12'; leave it as the export"));
}

TEST(JobJsonTest, AnExportedStateSaysWhatTheNewJobIs) {
  JobView job = WholeJob();
  job.state = JobState::kDead;
  job.delay = Millis(30'000);
  job.etag = "0123456789abcdef";
  const auto dead = ParseExportedJob(JobToJson(job), kPayloadMax);
  ASSERT_TRUE(dead.ok()) << dead.status().message();
  EXPECT_TRUE(dead->buried);
  EXPECT_EQ(dead->past->attempts, job.attempt);
  EXPECT_EQ(dead->touch_delay, Millis(30'000));
  job.delay = Millis(0);
  job.lease_token.reset();
  EXPECT_EQ(ParseExportedJob(JobToJson(job), kPayloadMax)->touch_delay, Millis(0));
  job.state = JobState::kFinished;
  EXPECT_EQ(ParseExportedJob(JobToJson(job), kPayloadMax).status().reason(), "finished_job");
}

// It became a job without one.
TEST(JobJsonTest, AnExportedJobWhosePayloadIsNotThereIsRefused) {
  JobView listed = WholeJob();
  listed.payload.reset();
  const Status refused = ParseExportedJob(JobToJson(listed), kPayloadMax).status();
  EXPECT_EQ(refused.message(),
            "member 'payload_bytes': is 3, and the line has no payload; take it from delayctl "
            "export, which has the payloads that are kept, or leave it out");
  EXPECT_EQ(refused.reason(), "invalid_member");
  listed.payload = "";
  EXPECT_EQ(ParseExportedJob(JobToJson(listed), kPayloadMax).status().message(), refused.message());
  listed.payload_bytes = 0;
  EXPECT_TRUE(ParseExportedJob(JobToJson(listed), kPayloadMax).ok());
  const std::string by_jq = R"({"payload":null,"payload_bytes":)";
  EXPECT_EQ(ParseExportedJob(by_jq + "3}", kPayloadMax).status().message(), refused.message());
  EXPECT_EQ(ParseExportedJob(by_jq + "4}", kPayloadMax)->payload, "null");
  listed.payload = "edited since";
  listed.payload_bytes = 3;
  EXPECT_TRUE(ParseExportedJob(JobToJson(listed), kPayloadMax).ok());
}

TEST(JobJsonTest, OnlyAFinishedJobThatHasItsPayloadCanBeDoneAgain) {
  JobView job = WholeJob();
  job.state = JobState::kFinished;
  const auto advice = [&job] { return ParseExportedJob(JobToJson(job), kPayloadMax).status(); };
  EXPECT_THAT(advice().message(), HasSubstr("; leave the line or its state out"));
  job.payload.reset();
  EXPECT_THAT(advice().message(), HasSubstr("; leave the line out"));
}

TEST(JobSpecJsonTest, RulesForTakenKeysReadBack) {
  for (const OnConflict rule : {OnConflict::kFail, OnConflict::kKeep, OnConflict::kReplace}) {
    JobSpec spec{.key = "k", .on_conflict = rule};
    spec.touch_delay = Millis(5000);
    const auto read = ParseJobSpec(JobSpecToJson(spec), kPayloadMax);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->on_conflict, rule);
    EXPECT_EQ(read->touch_delay, Millis(5000));
    EXPECT_EQ(read->past, nullptr);
  }
  EXPECT_EQ(ParseJobSpec(R"({"on_conflict":"perhaps"})", kPayloadMax).status().message(),
            "member 'on_conflict': is 'perhaps'; use fail, keep or replace");
}

TEST(JobSpecJsonTest, APastReadsBack) {
  JobSpec spec;
  spec.past = std::make_shared<JobPast>();
  spec.past->created = WallFromMillis(1'798'793'000'123);
  spec.past->attempts = 3;
  spec.past->last_error = "busy";
  spec.past->timeouts = 1;
  spec.past->releases = 2;
  spec.past->buries = 4;
  spec.past->kicks = 5;
  spec.past->history = {{.kind = JobEvent::Kind::kNacked,
                         .at = WallFromMillis(1'798'793'000'456),
                         .who = "w",
                         .what = "\"busy\""},
                        {.kind = JobEvent::Kind::kMoved, .at = WallFromMillis(7)}};
  const auto read = ParseJobSpec(JobSpecToJson(spec), kPayloadMax);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_NE(read->past, nullptr);
  EXPECT_EQ(read->past->created, spec.past->created);
  EXPECT_EQ(read->past->attempts, 3U);
  EXPECT_EQ(read->past->last_error, "busy");
  EXPECT_EQ(read->past->timeouts, 1U);
  EXPECT_EQ(read->past->releases, 2U);
  EXPECT_EQ(read->past->buries, 4U);
  EXPECT_EQ(read->past->kicks, 5U);
  EXPECT_EQ(read->past->history, spec.past->history);
}

TEST(JobSpecJsonTest, WhatIsNoHistoryIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"history":7})", "member 'history': is a number; write an array"},
      {R"({"history":"[]"})", "member 'history': is a string; write an array"},
      {R"({"history":["{}"]})", "member 'history': holds a string; write objects such as"},
      {R"({"history":[{}]})", "member 'history': an event lacks 'event' or 'at'"},
      {R"({"history":[{"event":"acked","at":null}]})", "an event lacks 'event' or 'at'"},
      {R"({"history":[{"at":"2027-01-01T09:00:00Z"}]})", "an event lacks 'event' or 'at'"},
      {R"({"history":[{"event":"slept"}]})",
       "member 'history': member 'event': is 'slept', which is no event of a job"}};
  for (const auto& [json, message] : cases) {
    const Status status = Refused(json);
    EXPECT_EQ(status.reason(), "invalid_member") << json;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

TEST(JobJsonTest, AShortAnswerReadsBack) {
  const auto read = ParseEnqueued(EnqueuedIdToJson(JobId{42}, true));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->job.id, JobId{42});
  EXPECT_TRUE(read->existed);
  const auto dead = ParseEnqueued(EnqueuedIdToJson(JobId{42}, true, JobState::kDead));
  ASSERT_TRUE(dead.ok()) << dead.status().message();
  EXPECT_EQ(dead->job.state, JobState::kDead);
  for (const bool cancelled : {true, false}) {
    const auto finished =
        ParseEnqueued(EnqueuedIdToJson(JobId{42}, true, JobState::kFinished, cancelled));
    ASSERT_TRUE(finished.ok()) << finished.status().message();
    EXPECT_EQ(finished->job.state, JobState::kFinished);
    EXPECT_EQ(finished->job.outcome, cancelled ? "cancelled" : "acked");
  }
}

}  // namespace
}  // namespace delayd::protocol

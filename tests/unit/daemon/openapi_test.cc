// The description of the API says what the router and the parsers do, no more and no less.
#include "protocol/openapi.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "daemon/access.h"
#include "daemon/http/router.h"
#include "protocol/ack_json.h"
#include "protocol/bulk_json.h"
#include "protocol/cancel_json.h"
#include "protocol/job_json.h"
#include "protocol/json_reader.h"
#include "protocol/problem.h"
#include "protocol/stats_json.h"
#include "protocol/store_json.h"
#include "tests/support/json_members.h"
#include "tests/support/plain_report.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/router_fixture.h"

#include <sys/stat.h>

namespace delayd::http {
namespace {

std::string Upper(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

// "/v1/jobs/{id}" as the router writes it: "v1/jobs/*".
std::string RouterPath(std::string path) {
  path.erase(0, 1);
  for (size_t open = path.find('{'); open != std::string::npos; open = path.find('{')) {
    path.replace(open, path.find('}', open) - open + 1, "*");
  }
  return path;
}

// Of an answer that only others read.
Status HasMembersOf(const std::string& json, const std::string& written) {
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  return std::ranges::equal(test::Members(json), test::Members(written), same_name)
             ? OkStatus()
             : Internal("what is written is " + written);
}

TEST(OpenApiTest, DescribesEveryRouteAndNoOther) {
  std::set<std::string> described;
  for (const auto& [path, operations] :
       test::Members(test::Members(std::string(protocol::OpenApiDocument())).at("paths"))) {
    for (const auto& [method, operation] : test::Members(operations)) {
      described.insert(Upper(method) + " " + RouterPath(path));
    }
  }
  std::set<std::string> routed;
  for (const auto& [method, path] : Router::RouteNames()) {
    routed.insert(std::string(method) + " " + std::string(path));
  }
  EXPECT_EQ(described, routed);
}

// "/v1/leases/{token}/ack" with something in place of each name.
std::string TargetOf(std::string path) {
  for (const auto& [name, value] : {std::pair("{id}", "1"),
                                    std::pair("{queue}", "q"),
                                    std::pair("{key}", "k"),
                                    std::pair("{token}", "1-1-1")}) {
    if (const size_t at = path.find(name); at != std::string::npos) {
      path.replace(at, std::string_view(name).size(), value);
    }
  }
  return path;
}

// What is taken in place of something that is not: the refusal names it all.
std::set<std::string> Taken(const std::string& method,
                            const std::string& target,
                            const std::string& body = {}) {
  const Request request{.method = method,
                        .target = target,
                        .content_type = body.empty() ? "" : "application/json",
                        .body = body};
  const Router router({.service = &test::kPlainReport});
  const auto routed = RouteOf(router, request, Router::Find(request), {});
  const Response* refusal = std::get_if<Response>(&routed);
  if (refusal == nullptr) {
    ADD_FAILURE() << method << " " << target << " is not refused";
    return {};
  }
  std::string names = protocol::ParseProblem(refusal->status, refusal->body).message();
  size_t begin = names.size();
  for (const std::string_view before : {"s are ", "the only member is "}) {
    const size_t found = names.rfind(before);
    begin = found == std::string::npos ? begin : found + before.size();
  }
  std::set<std::string> taken;
  std::istringstream words(names.substr(begin));
  for (std::string word; words >> word;) {
    taken.insert(word.substr(0, word.find(',')));
  }
  return taken;
}

std::set<std::string> NamesOf(const std::string& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : test::Members(object)) {
    names.insert(name);
  }
  return names;
}

std::set<std::string> QueryParameters(const std::map<std::string, std::string>& operation) {
  std::set<std::string> names;
  if (!operation.contains("parameters")) {
    return names;
  }
  const Status read = protocol::ReadJsonArray(
      operation.at("parameters"), [&names](const protocol::JsonValue& parameter) {
        const auto members = test::Members(std::string(parameter.text));
        if (members.contains("in") && members.at("in") == "query") {
          names.insert(members.at("name"));
        }
        return OkStatus();
      });
  EXPECT_TRUE(read.ok()) << read.message();
  return names;
}

// The members of the body in JSON, as its schema has them.
std::set<std::string> BodyMembers(const std::map<std::string, std::string>& operation,
                                  const std::map<std::string, std::string>& schemas) {
  if (!operation.contains("requestBody")) {
    return {};
  }
  const std::string& body = operation.at("requestBody");
  const std::string begin = "#/components/schemas/";
  const size_t name = body.find(begin) + begin.size();
  const std::string schema = body.substr(name, body.find('"', name) - name);
  return NamesOf(test::Members(schemas.at(schema)).at("properties"));
}

TEST(OpenApiTest, NamesTheParametersAndMembersThatAreTakenAndNoOthers) {
  const std::string unknown(65, 'x');  // too long to be taken for a slip
  const std::string member = "{\"" + unknown + "\":1}";
  const auto document = test::Members(std::string(protocol::OpenApiDocument()));
  const auto schemas = test::Members(test::Members(document.at("components")).at("schemas"));
  for (const auto& [path, operations] : test::Members(document.at("paths"))) {
    for (const auto& [method, text] : test::Members(operations)) {
      const auto operation = test::Members(text);
      const std::string target = TargetOf(path);
      EXPECT_EQ(Taken(Upper(method), target + "?" + unknown), QueryParameters(operation))
          << method << " " << path;
      if (method == "post" || method == "patch") {
        EXPECT_EQ(Taken(Upper(method), target, member), BodyMembers(operation, schemas))
            << method << " " << path;
      }
    }
  }
  EXPECT_EQ(Taken("POST", "/v1/jobs:cancel", "{\"filter\":" + member + "}"),
            NamesOf(test::Members(schemas.at("JobFilter")).at("properties")));
}

TEST(OpenApiTest, BoundsAreThoseOfTheLimits) {
  struct Bound {
    const char* schema;
    const char* member;
    const char* keyword;
    uint64_t value;
  };

  const Bound bounds[] = {{"NewJob", "queue", "maxLength", limits::kQueueNameBytesMax},
                          {"NewJob", "key", "maxLength", limits::kKeyBytesMax},
                          {"NewJob", "attempt", "maximum", limits::kPastFigureMax},
                          {"NewJob", "history", "maxItems", limits::kJobEventsMax},
                          {"Job", "id", "maximum", limits::kJobIdMax},
                          {"CancelMany", "limit", "maximum", limits::kBulkJobsMax},
                          {"KickMany", "limit", "maximum", limits::kBulkJobsMax},
                          {"RescheduleMany", "limit", "maximum", limits::kBulkJobsMax},
                          {"LeaseRequest", "count", "maximum", limits::kLeaseCountMax},
                          {"LeaseRequest", "client", "maxLength", limits::kClientNameBytesMax},
                          {"CancelIds", "ids", "maxItems", limits::kCancelIdsMax},
                          {"AckMany", "tokens", "maxItems", limits::kLeaseCountMax}};
  const auto document = test::Members(std::string(protocol::OpenApiDocument()));
  const auto schemas = test::Members(test::Members(document.at("components")).at("schemas"));
  for (const Bound& bound : bounds) {
    const auto members = test::Members(test::Members(schemas.at(bound.schema)).at("properties"));
    EXPECT_EQ(test::Members(members.at(bound.member))[bound.keyword], std::to_string(bound.value))
        << bound.schema << "." << bound.member;
  }
}

// It is listed so; a client that holds answers against the description must not refuse the page.
TEST(OpenApiTest, ADamagedJobMayTellNoQueue) {
  const auto document = test::Members(std::string(protocol::OpenApiDocument()));
  const auto schemas = test::Members(test::Members(document.at("components")).at("schemas"));
  const auto queue =
      test::Members(test::Members(test::Members(schemas.at("Job")).at("properties")).at("queue"));
  EXPECT_FALSE(queue.contains("minLength"));
  const std::regex pattern(queue.at("pattern"));
  EXPECT_TRUE(std::regex_match("", pattern));
  EXPECT_TRUE(std::regex_match("orders", pattern));
  EXPECT_FALSE(std::regex_match("-orders", pattern));
}

// What a generated client goes by: without it none of them sends a token.
TEST(OpenApiTest, SaysWhereATokenIsTaken) {
  const delayd::test::TempDir directory;
  const std::string file = directory.Sub("tokens");
  std::ofstream(file) << "read 0123456789abcdef\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const StatusOr<Access> access = Access::Create({.token_file = file});
  ASSERT_TRUE(access.ok()) << access.status().message();
  const Router router({.service = &test::kPlainReport, .access = &*access});
  const auto document = test::Members(std::string(protocol::OpenApiDocument()));
  ASSERT_EQ(document.at("security"), R"([{"token": []}, {}])");
  const auto schemes =
      test::Members(test::Members(document.at("components")).at("securitySchemes"));
  EXPECT_EQ(test::Members(schemes.at("token")).at("scheme"), "bearer");
  for (const auto& [path, operations] : test::Members(document.at("paths"))) {
    for (const auto& [method, operation] : test::Members(operations)) {
      const auto members = test::Members(operation);
      const Request request{.method = Upper(method), .target = path};
      const bool is_refused =
          std::holds_alternative<Response>(router.Admit({}, request, Router::Find(request)));
      EXPECT_EQ(members.contains("security") ? members.at("security") : "as all",
                is_refused ? "as all" : "[]")
          << method << " " << path;
    }
  }
}

TEST(OpenApiTest, SaysThatAnAnswerAboutOneJobHasItsETag) {
  int of_one_job = 0;
  for (const auto& [path, operations] :
       test::Members(test::Members(std::string(protocol::OpenApiDocument())).at("paths"))) {
    for (const auto& [method, operation] : test::Members(operations)) {
      const auto answers = test::Members(test::Members(operation).at("responses"));
      const std::string& answer = answers.at("200");
      const bool is_one_job = answer.find("#/components/schemas/Job\"") != std::string::npos;
      EXPECT_EQ(answer.find("\"ETag\"") != std::string::npos, is_one_job) << method << " " << path;
      of_one_job += is_one_job ? 1 : 0;
    }
  }
  EXPECT_GT(of_one_job, 5);
}

TEST(OpenApiTest, EveryExampleIsReadByOurOwnParsers) {
  using Parser = std::function<Status(const std::string&)>;
  using namespace protocol;  // NOLINT(google-build-using-namespace)
  const std::map<std::string, Parser> parsers = {
      {"NewJob", [](const auto& json) { return ParseJobSpec(json, 1000).status(); }},
      {"Job", [](const auto& json) { return ParseJob(json).status(); }},
      {"JobEvent",
       [](const auto& json) {
         return ParseJob("{\"id\":1,\"queue\":\"q\",\"state\":\"ready\",\"history\":[" + json +
                         "]}")
             .status();
       }},
      {"CancelIds", [](const auto& json) { return ParseCancelRequest(json).status(); }},
      {"CancelledIds",
       [](const auto& json) { return HasMembersOf(json, CancelledJobsToJson({})); }},
      {"AckMany", [](const auto& json) { return ParseAckRequest(json).status(); }},
      {"AckedMany", [](const auto& json) { return HasMembersOf(json, AckedLeasesToJson({})); }},
      {"LeaseOne", [](const auto& json) { return ParseLeaseRequest(json).status(); }},
      {"Pause", [](const auto& json) { return ParsePauseRequest(json).status(); }},
      {"KickQueue", [](const auto& json) { return ParseKickRequest(json).status(); }},
      {"Kicked", [](const auto& json) { return ParseKicked(json).status(); }},
      {"EnqueuedJob", [](const auto& json) { return ParseEnqueued(json).status(); }},
      {"EnqueuedId", [](const auto& json) { return ParseEnqueued(json).status(); }},
      {"JobPage", [](const auto& json) { return ParseJobPage(json).status(); }},
      {"Reschedule", [](const auto& json) { return ParseRescheduleRequest(json).status(); }},
      {"JobFilter",
       [](const auto& json) {
         return ParseChangeManyRequest("{\"filter\":" + json + "}").status();
       }},
      {"CancelMany", [](const auto& json) { return ParseChangeManyRequest(json).status(); }},
      {"KickMany", [](const auto& json) { return ParseChangeManyRequest(json).status(); }},
      {"RescheduleMany", [](const auto& json) { return ParseChangeManyRequest(json).status(); }},
      {"ChangedMany", [](const auto& json) { return ParseChangedMany(json).status(); }},
      {"LeaseRequest", [](const auto& json) { return ParseLeaseRequest(json).status(); }},
      {"Nack", [](const auto& json) { return ParseLeaseChange(json).status(); }},
      {"Bury", [](const auto& json) { return ParseLeaseChange(json).status(); }},
      {"Extend", [](const auto& json) { return ParseLeaseChange(json).status(); }},
      {"Queue", [](const auto& json) { return ParseQueue(json).status(); }},
      {"QueueList", [](const auto& json) { return ParseQueues(json).status(); }},
      {"Forecast", [](const auto& json) { return ParseForecast(json).status(); }},
      {"Stats", [](const auto& json) { return ParseStats(json).status(); }},
      {"VerifyResult", [](const auto& json) { return ParseVerifyResult(json).status(); }},
      {"BackupRequest", [](const auto& json) { return ParseBackupRequest(json).status(); }},
      {"DrainRequest", [](const auto& json) { return ParseDrainRequest(json).status(); }},
      {"BackupResult", [](const auto& json) { return ParseBackupResult(json).status(); }},
      {"Health", [](const auto& json) { return ParseHealth(json).status(); }},
      {"Problem", [](const auto& json) {
         return ParseProblem(404, json).reason() == "not_found" ? OkStatus()
                                                                : Internal("not understood");
       }}};
  size_t read = 0;
  const auto components =
      test::Members(test::Members(std::string(OpenApiDocument())).at("components"));
  for (const auto& [name, schema] : test::Members(components.at("schemas"))) {
    const auto members = test::Members(schema);
    if (members.at("type") != "object") {
      continue;
    }
    ASSERT_TRUE(members.contains("example")) << name << " has no example";
    ASSERT_TRUE(parsers.contains(name)) << name << " has no parser here";
    const Status status = parsers.at(name)(members.at("example"));
    EXPECT_TRUE(status.ok()) << name << ": " << status.message();
    ++read;
  }
  EXPECT_EQ(read, parsers.size());
}

TEST(RouterRenderTest, EachFigureOfTheStatsHasItsName) {
  engine::StatsView stats;
  stats.scheduled = 1;
  stats.ready = 2;
  stats.leased = 3;
  stats.dead = 4;
  stats.queues = 5;
  stats.waiting = 6;
  stats.enqueued = 7;
  stats.existed = 8;
  stats.cancelled = 9;
  stats.rescheduled = 10;
  stats.fired = 11;
  stats.handed_out = 12;
  stats.acked = 13;
  stats.nacked = 14;
  stats.buried = 15;
  stats.lease_expired = 16;
  stats.died = 17;
  stats.kicked = 18;
  stats.quota_refusals = 19;
  stats.damaged = 20;
  stats.commits = 21;
  stats.epoch = 22;
  stats.commit_sequence = 23;
  stats.now = WallFromMillis(1'798'794'000'007);
  engine::Reply reply;
  reply.body = Indirect<engine::StatsView>(stats);
  const std::string body = Router::Render(ReplyForm::kStats, reply).body;
  EXPECT_EQ(body.substr(0, body.find(",\"clock\"")),
            R"({"scheduled":1,"ready":2,"leased":3,"dead":4,"queues":5,"waiting":6,)"
            R"("enqueued":7,"existed":8,"cancelled":9,"rescheduled":10,"fired":11,)"
            R"("handed_out":12,"acked":13,"nacked":14,"buried":15,"lease_expired":16,)"
            R"("died":17,"kicked":18,"quota_refusals":19,"damaged":20,"commits":21,)"
            R"("epoch":22,"commit_sequence":23)");
  EXPECT_NE(body.find(R"("now":"2027-01-01T09:00:00.007Z")"), std::string::npos);
}

}  // namespace
}  // namespace delayd::http

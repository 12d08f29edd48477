// 10,000 orders, the daemon killed while they are imported and again while they fire: what the
// clients wrote down themselves must agree with the promises.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/coding.h"
#include "base/job.h"
#include "protocol/job_json.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"

namespace delayd::test {
namespace {

struct Order {
  Millis delay{0};
  uint64_t fingerprint = 0;
};

struct Received {
  std::string token;
  uint32_t attempt = 0;
  int64_t boot_ms = 0;
  uint64_t fingerprint = 0;
};

// What the worker wrote down of one order, in order.
struct Story {
  std::vector<Received> received;
  std::vector<std::string> acked;  // tokens
  std::map<std::string, size_t>
      received_before;  // token -> hand-outs seen when its ack was answered
};

size_t CountLines(const std::string& path, const std::string& prefix = "") {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    count += line.starts_with(prefix) ? 1U : 0U;
  }
  return count;
}

// Whether so many lines come. A slow machine may take its time, as long as it gets on.
bool AwaitLines(const std::string& path, const std::string& prefix, size_t wanted) {
  for (size_t now = CountLines(path, prefix); now < wanted; now = CountLines(path, prefix)) {
    if (!WaitUntil([&] { return CountLines(path, prefix) > now; })) {
      return false;
    }
  }
  return true;
}

std::map<std::string, Order> ReadOrders() {
  std::map<std::string, Order> orders;
  std::ifstream file(DELAYD_ORDERS);
  for (std::string line; std::getline(file, line);) {
    const auto spec = protocol::ParseJobSpec(line, 1 << 20);
    EXPECT_TRUE(spec.ok()) << spec.status().message();
    orders[spec->key] = {.delay = std::get<DueAfter>(spec->due).delay,
                         .fingerprint = Fingerprint(spec->payload)};
  }
  return orders;
}

std::map<std::string, Story> ReadRecord(const std::string& path) {
  std::map<std::string, Story> stories;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string event;
    std::string id;
    std::string key;
    std::string token;
    words >> event >> id >> key >> token;
    Story& story = stories[key];
    if (event == "received") {
      Received one{.token = token};
      words >> one.attempt >> one.boot_ms >> one.fingerprint;
      story.received.push_back(one);
    } else if (event == "acked") {
      story.acked.push_back(token);
      story.received_before[token] = story.received.size();
    }
  }
  return stories;
}

std::string EpochOf(const std::string& token) {
  const size_t first = token.find('-');
  return token.substr(first + 1, token.find('-', first + 1) - first - 1);
}

void CheckStory(const std::string& key,
                const Order& order,
                const Story& story,
                int64_t import_began_ms) {
  ASSERT_FALSE(story.received.empty()) << "P3: " << key << " was acknowledged and never handed out";
  std::set<std::string> epochs;
  for (const Received& one : story.received) {
    // The orders have delays, and a delay is promised on the boot clock.
    EXPECT_GE(one.boot_ms, import_began_ms + order.delay.count()) << "P2: " << key;
    EXPECT_EQ(one.fingerprint, order.fingerprint) << "P9: " << key << " has another payload";
    // Leases are far longer than this test: a second hand-out is explained by a crash and by
    // nothing else.
    EXPECT_TRUE(epochs.insert(EpochOf(one.token)).second)
        << "P5: " << key << " twice in one run of the daemon";
  }
  ASSERT_EQ(story.acked.size(), 1U)
      << "P3: " << key << " was acked " << story.acked.size() << " times";
  EXPECT_EQ(story.received_before.at(story.acked[0]), story.received.size())
      << "P3: " << key << " was handed out again after its ack";
}

TEST(OrderStormTest, P1ToP6HoldForEveryOrderOverKills) {
  std::mt19937_64 random(Seed());
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::map<std::string, Order> orders = ReadOrders();
  ASSERT_EQ(orders.size(), 10'000U);
  const std::string record = daemon.Path("worker-record");
  const std::string ack_log = daemon.Path("ack-log");
  Process worker({.argv = {DELAYD_BIN_DIR "/order_worker", "unix:" + daemon.socket(), record}});

  const int64_t import_began_ms = ToMillis(SystemClock().Sample().boot);
  const auto import = daemon.CtlOptions({"import", "--ack-log", ack_log, DELAYD_ORDERS});
  {
    Process importer(import);
    const size_t moment = 500 + random() % 8000;
    ASSERT_TRUE(WaitUntil([&] { return CountLines(ack_log) >= moment || importer.HasEnded(); }));
    daemon.Kill();
    importer.Wait();
  }
  ASSERT_TRUE(daemon.Start());
  const ProcessResult imported = RunProcess(import);
  ASSERT_EQ(imported.exit_code, 0) << imported.err;

  for (int kill = 0; kill < 3; ++kill) {
    // A test that stood still for a while finds most orders done.
    const size_t moment = std::min<size_t>(CountLines(record, "acked") + 500 + random() % 1500,
                                           orders.size() * 9 / 10);
    ASSERT_TRUE(AwaitLines(record, "acked", moment)) << daemon.log();
    daemon.Kill();
    ASSERT_TRUE(daemon.Start());
  }
  const auto all_done = [&] {
    return daemon.CtlOk({"list", "--queue", "orders", "--limit", "1", "-q"}).empty();
  };
  ASSERT_TRUE(AwaitLines(record, "received", orders.size()) &&
              WaitUntil(all_done, std::chrono::minutes(2)))
      << daemon.CtlOk({"stats"});
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait().exit_code, 0);

  const std::map<std::string, Story> stories = ReadRecord(record);
  size_t handed_out_again = 0;
  for (const auto& [key, order] : orders) {
    const auto found = stories.find(key);
    ASSERT_NE(found, stories.end()) << "P1: " << key << " was acknowledged and is lost";
    // An ack without an answer may have happened: then nothing more is heard of the job.
    Story story = found->second;
    if (story.acked.empty()) {
      story.acked.push_back(story.received.back().token);
      story.received_before[story.acked[0]] = story.received.size();
    }
    CheckStory(key, order, story, import_began_ms);
    handed_out_again += story.received.size() - 1;
  }
  std::printf("10000 orders, 4 kills, %zu handed out again after a kill\n", handed_out_again);
  EXPECT_EQ(daemon.Stop().exit_code, 0);
}

}  // namespace
}  // namespace delayd::test

// The real daemon and its beanstalk sockets: what needs a process, a disk or a kernel to be seen.
#include <algorithm>
#include <csignal>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/beanstalk_client.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BeanstalkTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Start()); }

  bool Start(const std::string& settings = "") {
    const std::string config =
        daemon_.Write("delayd.yaml",
                      "beanstalk: { socket: " + YamlText(daemon_.Path("b.sock")) +
                          ", listen: 127.0.0.1:0 }\n" + settings);
    return daemon_.Start({"--config", config});
  }

  uint16_t Port() {
    const std::string log = daemon_.log();
    static const std::regex kPort("beanstalk:127\\.0\\.0\\.1:([0-9]+)");
    uint16_t port = 0;
    for (std::sregex_iterator it(log.begin(), log.end(), kPort), end; it != end; ++it) {
      port = static_cast<uint16_t>(std::stoi((*it)[1]));  // the latest start's
    }
    return port;
  }

  // Until what is answered to this command has this text.
  static void Await(BeanstalkClient* client, const std::string& command, const std::string& text) {
    std::string answer;
    EXPECT_TRUE(WaitUntil([&] {
      answer = client->Call(command);
      return answer.find(text) != std::string::npos;
    })) << text
        << "is not in " << answer;
  }

  BeanstalkClient Tcp() { return BeanstalkClient::Tcp(Port()); }

  BeanstalkClient Unix() { return BeanstalkClient::Unix(daemon_.Path("b.sock")); }

  Daemon daemon_;
};

TEST_F(BeanstalkTest, AJobOfThisProtocolIsAJobOfTheOther) {
  BeanstalkClient tcp = Tcp();
  BeanstalkClient local = Unix();
  EXPECT_EQ(tcp.Call("use orders"), "USING orders\r\n");
  EXPECT_EQ(tcp.Call("put 7 1800 60 5\r\nhello"), "INSERTED 1\r\n");
  EXPECT_THAT(daemon_.CtlOk({"list", "-o", "jsonl"}),
              ::testing::AllOf(HasSubstr(R"("queue":"orders")"),
                               HasSubstr(R"("priority":7)"),
                               HasSubstr(R"("state":"scheduled")")));
  daemon_.CtlOk({"reschedule", "1", "--in", "0s"});
  EXPECT_EQ(local.Call("watch orders"), "WATCHING 2\r\n");
  EXPECT_EQ(local.Call("reserve"), "RESERVED 1 5\r\nhello\r\n");
  EXPECT_EQ(daemon_.Ctl({"cancel", "1"}).exit_code, 4) << "it is being worked on";
  EXPECT_EQ(local.Call("delete 1"), "DELETED\r\n");
  EXPECT_EQ(daemon_.CtlOk({"enqueue", "-q", "--queue", "orders", "--in", "1h", "other"}), "2");
  EXPECT_EQ(tcp.Call("peek-delayed"), "FOUND 2 5\r\nother\r\n");
  EXPECT_EQ(tcp.Call("delete 2"), "DELETED\r\n");
}

TEST_F(BeanstalkTest, P1WhatWasAnsweredIsThereAfterAKill) {
  {
    BeanstalkClient client = Tcp();
    std::string puts;
    for (int i = 0; i < 1000; ++i) {
      puts += "put 0 0 60 1\r\nx\r\n";
    }
    client.Send(puts);
    for (int i = 1; i <= 1000; ++i) {
      ASSERT_EQ(client.Read(), "INSERTED " + std::to_string(i) + "\r\n");
    }
    EXPECT_EQ(client.Call("reserve"), "RESERVED 1 1\r\nx\r\n");
    EXPECT_EQ(client.Call("delete 1"), "DELETED\r\n");
    EXPECT_EQ(client.Call("reserve"), "RESERVED 2 1\r\nx\r\n");
    EXPECT_EQ(client.Call("bury 2 9"), "BURIED\r\n");
    daemon_.Kill();
  }
  ASSERT_TRUE(Start());
  BeanstalkClient client = Tcp();
  EXPECT_THAT(client.Call("stats-tube default"),
              ::testing::AllOf(HasSubstr("current-jobs-ready: 998\n"),
                               HasSubstr("current-jobs-buried: 1\n")));
  EXPECT_EQ(client.Call("peek-buried"), "FOUND 2 1\r\nx\r\n");
  const std::string next = client.Call("put 0 0 60 1\r\nx");
  ASSERT_THAT(next, StartsWith("INSERTED "));
  EXPECT_GT(std::stoull(next.substr(9)), 1000U) << "ids are never used again";
}

TEST_F(BeanstalkTest, ByteByByteOverTheWire) {
  BeanstalkClient client = Tcp();
  for (const char byte : std::string("put 0 0 60 3\r\na\r\n\r\nreserve\r\n")) {
    client.Send(std::string(1, byte));
  }
  EXPECT_EQ(client.Read(), "INSERTED 1\r\n");
  EXPECT_EQ(client.Read(), "RESERVED 1 3\r\na\r\n\r\n");
}

TEST_F(BeanstalkTest, WhoOnlyClosesItsSendingSideIsServedToTheEnd) {
  BeanstalkClient client = Tcp();
  client.Send("put 0 0 60 1\r\nx\r\nreserve\r\ndelete 1\r\nreserve\r\nlist-tube-used\r\n");
  client.HalfClose();
  EXPECT_EQ(client.ReadToEnd(),
            "INSERTED 1\r\nRESERVED 1 1\r\nx\r\nDELETED\r\nTIMED_OUT\r\nUSING default\r\n");
}

TEST_F(BeanstalkTest, AJobOfAWorkerThatWentReachesTheNextAndIsCounted) {
  BeanstalkClient worker = Unix();
  EXPECT_EQ(worker.Call("put 0 0 600 1\r\nx"), "INSERTED 1\r\n");
  EXPECT_EQ(worker.Call("reserve"), "RESERVED 1 1\r\nx\r\n");
  BeanstalkClient next = Tcp();
  next.Send("reserve\r\n");
  BeanstalkClient other = Unix();
  Await(&other, "stats", "current-waiting: 1\n");
  worker.Close();
  EXPECT_EQ(next.Read(), "RESERVED 1 1\r\nx\r\n");
  EXPECT_THAT(other.Call("stats-job 1"), HasSubstr("reserves: 2\n"));
}

// Its end lies behind commands that are not read while it waits.
TEST_F(BeanstalkTest, AWorkerThatClosedBehindManyCommandsIsNoticed) {
  BeanstalkClient other = Unix();
  {
    BeanstalkClient worker = Unix();
    std::string commands = "reserve\r\n";
    while (commands.size() < size_t{128} * 1024) {
      commands += "reserve\r\nlist-tube-used\r\n";
    }
    worker.Send(commands);
    Await(&other, "stats", "current-waiting: 1\n");
  }
  Await(&other, "stats", "current-waiting: 0\n");
}

TEST_F(BeanstalkTest, AllThatAWorkerHeldComesBackInSteps) {
  constexpr int kJobs = 5000;
  BeanstalkClient worker = Unix();
  const auto ask = [](BeanstalkClient& client, const std::string& command) {
    std::string many;
    for (int i = 0; i < kJobs; ++i) {
      many += command;
    }
    client.Send(many);
    for (int i = 0; i < kJobs; ++i) {
      client.Read();
    }
  };
  ask(worker, "put 0 0 600 1\r\nx\r\n");
  ask(worker, "reserve-with-timeout 0\r\n");
  BeanstalkClient other = Tcp();
  EXPECT_THAT(other.Call("stats-tube default"), HasSubstr("current-jobs-reserved: 5000\n"));
  worker.Close();
  Await(&other, "stats-tube default", "current-jobs-ready: 5000\n");
}

// The commands of docs/protocol.md on the left, their answers on the right.
TEST_F(BeanstalkTest, TheExamplesOfThePageAreAnsweredAsItSays) {
  constexpr size_t kRight = 38;
  const std::string page = ReadFile(DELAYD_PROTOCOL_PAGE);
  const size_t begin = page.find("\nput-batch 2 ") + 1;
  std::istringstream lines(page.substr(begin, page.find("```", begin) - begin) + "\n");
  BeanstalkClient client = Unix();
  std::string command;
  std::string answer;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      const std::string left = line.substr(0, std::min(line.find("  "), line.size()));
      command += left.empty() ? "" : left + "\r\n";
      answer += line.size() > kRight ? line.substr(kRight) + "\n" : "";
      continue;
    }
    const bool ends_with_a_line = command.starts_with("put-batch ");
    client.Send(command + (ends_with_a_line ? "\r\n" : ""));
    std::string got = client.Read();
    std::erase(got, '\r');
    got.pop_back();  // behind the bytes that were counted
    EXPECT_EQ(got, answer);
    command.clear();
    answer.clear();
  }
  EXPECT_EQ(client.Call("stats-job 2"), "NOT_FOUND\r\n") << "all three were read";
}

// docs/protocol.md, "Of a tube with more ready jobs than"
TEST_F(BeanstalkTest, BehindAFullMemoryTheOldestComeFirstWhateverTheirPriority) {
  constexpr int kBatches = 400;  // of 1000 jobs: more than memory has room for
  daemon_.Stop();
  ASSERT_TRUE(Start("memory: { budget: 16MiB }\n"));
  BeanstalkClient client = Unix();
  std::string jobs;
  for (int i = 0; i < 1000; ++i) {
    jobs += "9 0 600000 0\r\n\r\n";
  }
  const std::string batch = "put-batch 1000 " + std::to_string(jobs.size()) + "\r\n" + jobs;
  for (int i = 0; i < kBatches; ++i) {
    ASSERT_THAT(client.Call(batch), StartsWith("OK "));
  }
  const std::string urgent = client.Call("put 0 0 600 1\r\nx");
  ASSERT_THAT(urgent, StartsWith("INSERTED "));
  const uint64_t id = std::stoull(urgent.substr(9));
  EXPECT_EQ(client.Call("reserve"),
            "RESERVED " + std::to_string(id - kBatches * 1000) + " 0\r\n\r\n");
  EXPECT_THAT(client.Call("stats-job " + std::to_string(id)), HasSubstr("state: ready\n"));
  EXPECT_THAT(client.Call("stats-tube default"), Not(HasSubstr("current-jobs-delayed: 0\n")));
  EXPECT_THAT(ReadFile(DELAYD_PROTOCOL_PAGE), HasSubstr("more ready jobs than `memory.budget`"));
}

TEST_F(BeanstalkTest, QuitClosesTheConnection) {
  BeanstalkClient client = Tcp();
  client.Send("use a\r\nquit\r\nuse b\r\n");
  EXPECT_EQ(client.ReadToEnd(), "USING a\r\n");
}

TEST_F(BeanstalkTest, SigUsr1DrainsTheDaemonUntilTheDrainIsEnded) {
  BeanstalkClient client = Tcp();
  EXPECT_EQ(client.Call("put 0 0 600 1\r\nx"), "INSERTED 1\r\n");
  daemon_.Signal(SIGUSR1);
  std::string reply;
  do {  // signals are asynchronous
    reply = client.Call("put 0 0 600 1\r\nx");
  } while (reply.starts_with("INSERTED"));
  EXPECT_EQ(reply, "DRAINING\r\n");
  EXPECT_THAT(client.Call("stats"), HasSubstr("draining: true\n"));
  EXPECT_NE(daemon_.Ctl({"enqueue", "x"}).exit_code, 0) << "not through the other door either";
  EXPECT_THAT(client.Call("reserve"), StartsWith("RESERVED "));
  daemon_.WaitForLog("draining: no new jobs are taken");
  EXPECT_EQ(daemon_.Ctl({"drain", "end"}).exit_code, 0);
  EXPECT_THAT(client.Call("put 0 0 600 1\r\nx"), StartsWith("INSERTED "));
  daemon_.WaitForLog("the drain has ended");
}

// docs/protocol.md: a plain reserve never times out, and workers die of it when it does.
TEST_F(BeanstalkTest, AStopAnswersWhoWaitsForATimeAndHangsUpOnWhoWaitsForever) {
  BeanstalkClient forever = Tcp();
  forever.Send("put 0 3600 60 1\r\nx\r\nreserve\r\n");
  BeanstalkClient for_a_time = Tcp();
  for_a_time.Send("reserve-with-timeout 600\r\n");
  BeanstalkClient other = Tcp();
  Await(&other, "stats", "current-waiting: 2\n");
  std::jthread stop([this] { daemon_.Stop(); });
  EXPECT_EQ(forever.ReadToEnd(), "INSERTED 1\r\n");
  EXPECT_EQ(for_a_time.ReadToEnd(), "TIMED_OUT\r\n");
  forever.Close();
  for_a_time.Close();
  other.Close();
}

// All at once: what a turn makes for them is counted only at its end.
TEST_F(BeanstalkTest, P10ManyClientsThatAskForLargeJobsAtOnceDoNotGetThemInOneTurn) {
#if defined(DELAYD_SANITIZED)
  constexpr size_t kClients = 20;  // what is slow and takes memory of its own tells nothing of more
#else
  constexpr size_t kClients = 400;
#endif
  constexpr uint64_t kPeakMax = 2000;  // MB; each asks for four answers of 1 MiB, twice in memory
  daemon_.Stop();
  ASSERT_TRUE(Start("limits: { request_body: 2MiB }\n"));
  BeanstalkClient client = Unix();
  const std::string body(size_t{1} << 20, 'x');
  const std::string put = client.Call("put 0 9000 60 1048576\r\n" + body);
  ASSERT_THAT(put, StartsWith("INSERTED "));
  const std::string peek = "peek " + put.substr(9);
  std::vector<BeanstalkClient> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(Unix());
    ASSERT_EQ(clients.back().Call("list-tube-used"), "USING default\r\n");
  }
  ASSERT_EQ(kill(daemon_.pid(), SIGSTOP), 0);
  for (const BeanstalkClient& one : clients) {
    one.Send(peek + peek + peek + peek);
  }
  ASSERT_EQ(kill(daemon_.pid(), SIGCONT), 0);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.Call("use a"), "USING a\r\n");
  }
  const std::string status = ReadFile("/proc/" + std::to_string(daemon_.pid()) + "/status");
  const size_t peak = status.find("VmHWM:");
  ASSERT_NE(peak, std::string::npos);
  EXPECT_LT(std::stoull(status.substr(peak + 6)) / 1024, kPeakMax);
}

TEST_F(BeanstalkTest, AFlooderDoesNotKeepOthersFromBeingServed) {
  BeanstalkClient flooder = Tcp();
  std::string flood;
  for (int i = 0; i < 20000; ++i) {
    flood += "stats-tube default\r\n";  // long answers that nobody reads
  }
  std::jthread sender([&] { flooder.Send(flood); });
  BeanstalkClient other = Tcp();
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(other.Call("put 0 0 600 1\r\nx"), "INSERTED " + std::to_string(i) + "\r\n");
  }
  for (int i = 0; i < 20000; ++i) {
    ASSERT_THAT(flooder.Read(), StartsWith("OK "));
  }
}

}  // namespace
}  // namespace delayd::test

#include "protocol/client.h"

#include <unistd.h>

#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/tls.h"
#include "tests/support/certificate.h"
#include "tests/support/refused_call.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/protocol/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

namespace delayd::protocol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Millis kLong{60'000};

std::string Ok(const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::unique_ptr<Client> Connect(const ScriptedServer& server) {
  return std::move(Client::Create(server.address())).value();
}

TEST(ClientTest, OneConnectionCarriesManyRequests) {
  const ScriptedServer server({[](int fd) {
    for (const size_t body_bytes : {size_t{2}, size_t{0}}) {
      const std::string request = ScriptedServer::ReadRequest(fd, body_bytes);
      ScriptedServer::Write(fd, Ok(request, "Delayd-Commit: 77\r\n"));
    }
  }});
  const auto client = Connect(server);
  const auto one = client->Call("POST", "/v1/jobs", "application/json", "{}", kLong);
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_THAT(one->body, StartsWith("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"));
  EXPECT_THAT(one->body,
              HasSubstr("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"));
  EXPECT_EQ(one->commit_sequence, 77U);
  EXPECT_THAT(client->Call("GET", "/v1/jobs/1", "", "", kLong)->body,
              StartsWith("GET /v1/jobs/1 HTTP/1.1"));
}

TEST(ClientTest, AHeaderIsSentWithEveryChangeUntilItIsTakenBack) {
  const ScriptedServer server({[](int fd) {
    for (int i = 0; i < 4; ++i) {
      ScriptedServer::Write(fd, Ok(ScriptedServer::ReadRequest(fd)));
    }
  }});
  const auto client = Connect(server);
  const auto sent = [&client](const char* method = "POST") {
    return client->Call(method, "/", "", "", kLong)->body;
  };
  client->UseHeader("Prefer", "return=minimal");
  client->UseHeader("If-Match", "\"1\"");
  EXPECT_THAT(sent(), HasSubstr("\r\nIf-Match: \"1\"\r\nPrefer: return=minimal\r\n"));
  client->UseHeader("If-Match", "\"2\"");
  EXPECT_THAT(sent(), HasSubstr("\r\nIf-Match: \"2\"\r\nPrefer: return=minimal\r\n"));
  EXPECT_THAT(sent("GET"), AllOf(Not(HasSubstr("If-Match")), Not(HasSubstr("Prefer"))));
  client->UseHeader("If-Match", "");
  EXPECT_THAT(sent(), AllOf(HasSubstr("\r\nPrefer: "), Not(HasSubstr("If-Match"))));
}

TEST(ClientTest, AResponseMayComeInPiecesAndChunks) {
  const ScriptedServer server({[](int fd) {
    ScriptedServer::ReadRequest(fd);
    for (const char c :
         std::string("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
                     "2\r\nde\r\n0\r\n\r\n")) {
      ScriptedServer::Write(fd, std::string(1, c));
    }
  }});
  const auto response = Connect(server)->Call("GET", "/", "", "", kLong);
  ASSERT_TRUE(response.ok()) << response.status().message();
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "abcde");
  EXPECT_EQ(response->commit_sequence, 0U);
}

TEST(ClientTest, AnIdleConnectionThatWasClosedIsOpenedAgain) {
  const ScriptedServer server({[](int fd) {
                                 ScriptedServer::ReadRequest(fd);
                                 ScriptedServer::Write(fd, Ok("one"));
                               },
                               [](int fd) {
                                 ScriptedServer::ReadRequest(fd);
                                 ScriptedServer::Write(fd, Ok("two"));
                               }});
  const auto client = Connect(server);
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "one");
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "two");
}

// The next answer on it would be to another question.
TEST(ClientTest, AConnectionOnWhichMoreCameThanWasAskedForIsLeft) {
  const auto two = [](int fd) {
    ScriptedServer::ReadRequest(fd);
    ScriptedServer::Write(fd, Ok("one") + Ok("two"));
  };
  std::promise<void> said;
  const ScriptedServer server({two,
                               [&](int fd) {
                                 ScriptedServer::ReadRequest(fd);
                                 ScriptedServer::Write(fd, Ok("three"));
                                 ScriptedServer::Write(fd, Ok("four"));
                                 said.set_value();
                               },
                               two});
  const auto client = Connect(server);
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "one");
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "three");
  said.get_future().wait();
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "one");
}

TEST(ClientTest, AnswersStayInStepBehindAnInterimOne) {
  const ScriptedServer server({[](int fd) {
    for (const char* const body : {"one", "two"}) {
      ScriptedServer::ReadRequest(fd);
      ScriptedServer::Write(fd, "HTTP/1.1 102 Processing\r\n\r\n");
      ScriptedServer::Write(fd, Ok(body));
    }
  }});
  const auto client = Connect(server);
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "one");
  EXPECT_EQ(client->Call("GET", "/", "", "", kLong)->body, "two");
}

TEST(ClientTest, ALostAnswerToAChangeIsUnknown) {
  const ScriptedServer server({[](int fd) { ScriptedServer::ReadRequest(fd, 2); }});
  const auto response = Connect(server)->Call("POST", "/v1/jobs", "application/json", "{}", kLong);
  EXPECT_EQ(response.status().code(), StatusCode::kUnknown);
  EXPECT_EQ(response.status().reason(), "outcome_unknown");
  EXPECT_THAT(response.status().message(), HasSubstr("may have been carried out"));
}

TEST(ClientTest, ACutAnswerToAChangeIsUnknown) {
  const ScriptedServer server({[](int fd) {
    ScriptedServer::ReadRequest(fd);
    ScriptedServer::Write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  }});
  EXPECT_EQ(Connect(server)->Call("DELETE", "/v1/jobs/1", "", "", kLong).status().code(),
            StatusCode::kUnknown);
}

TEST(ClientTest, ALostAnswerToAQuestionIsUnavailable) {
  const ScriptedServer server({[](int fd) { ScriptedServer::ReadRequest(fd); }});
  const auto response = Connect(server)->Call("GET", "/", "", "", kLong);
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(response.status().reason(), "connection_lost");
}

TEST(ClientTest, AQuestionThatIsNotAnsweredInTimeSaysSo) {
  const ScriptedServer server({[](int fd) { ScriptedServer::AwaitEnd(fd); }});
  const auto response = Connect(server)->Call("GET", "/", "", "", Millis(20));
  EXPECT_EQ(response.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(response.status().message(), HasSubstr("no answer within 20ms"));
}

TEST(ClientTest, AChangeThatIsNotAnsweredInTimeIsUnknown) {
  const ScriptedServer server({[](int fd) { ScriptedServer::AwaitEnd(fd); }});
  const auto response = Connect(server)->Call("POST", "/", "", "", Millis(20));
  EXPECT_EQ(response.status().code(), StatusCode::kUnknown);
  EXPECT_EQ(response.status().reason(), "timed_out");
}

TEST(ClientTest, ACallIsGivenUpWhenItsCallerSaysSo) {
  const ScriptedServer server({[](int fd) { ScriptedServer::AwaitEnd(fd); }});
  const auto client = Connect(server);
  const int fd = eventfd(1, EFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  client->GiveUpWhen(fd, Millis(0));
  const auto response = client->Call("POST", "/", "", "", Millis(3'600'000));
  EXPECT_EQ(response.status().code(), StatusCode::kUnknown);
  EXPECT_EQ(response.status().reason(), "timed_out");
  close(fd);
}

TEST(ClientTest, AnAnswerBeforeTheBodyWasReadIsTaken) {
  const ScriptedServer server({[](int fd) {
    ScriptedServer::ReadRequest(fd);
    ScriptedServer::Write(
        fd, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
    shutdown(fd, SHUT_RDWR);
  }});
  const auto response = Connect(server)->Call(
      "POST", "/v1/jobs", "application/json", std::string(8 << 20, 'x'), kLong);
  ASSERT_TRUE(response.ok()) << response.status().message();
  EXPECT_EQ(response->status, 413);
}

TEST(ClientTest, AServerWithAFullBacklogIsWaitedFor) {
  std::promise<void> go;
  const auto answer = [](int fd) {
    if (!ScriptedServer::ReadRequest(fd).empty()) {
      ScriptedServer::Write(fd, Ok(""));
    }
  };
  std::vector<ScriptedServer::Script> scripts(11, answer);
  scripts.front() = [&](int /*fd*/) { go.get_future().wait(); };
  const ScriptedServer server(scripts);
  // One is served, and nine may wait.
  std::vector<int> waiting;
  for (int i = 0; i < 10; ++i) {
    waiting.push_back(server.Connect());
  }
  const Status status = Connect(server)->Call("GET", "/", "", "", Millis(30)).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("no answer within 30ms"));
  std::future<StatusOr<HttpResponse>> response = std::async(
      std::launch::async, [&] { return Connect(server)->Call("GET", "/", "", "", kLong); });
  EXPECT_EQ(response.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  go.set_value();
  for (const int fd : waiting) {
    close(fd);
  }
  EXPECT_TRUE(response.get().ok());
}

TEST(ClientTest, WhatIsNoHttpIsSaidToBeSo) {
  const ScriptedServer server({[](int fd) {
    ScriptedServer::ReadRequest(fd);
    ScriptedServer::Write(fd, "220 mail.example ESMTP\r\n\r\n");
  }});
  const auto response = Connect(server)->Call("GET", "/", "", "", kLong);
  EXPECT_EQ(response.status().reason(), "invalid_response");
  EXPECT_THAT(response.status().message(), Not(HasSubstr(kMayBeDone)));
}

TEST(ClientTest, WhatIsNoHttpMayHaveChangedSomething) {
  const ScriptedServer server({[](int fd) {
    ScriptedServer::ReadRequest(fd);
    ScriptedServer::Write(fd, "HTTP/1.1 0x20 OK\r\n\r\n");
  }});
  const auto response = Connect(server)->Call("POST", "/", "", "", kLong);
  EXPECT_EQ(response.status().code(), StatusCode::kUnknown);
  EXPECT_EQ(response.status().reason(), "invalid_response");
  EXPECT_THAT(response.status().message(), HasSubstr(kMayBeDone));
}

// A server on loopback that hears one request over TLS, and answers what is none.
class BrokenTlsServer {
 public:
  explicit BrokenTlsServer(const test::CertificateFiles& files)
      : channel_(TlsContext::ForServer(files.certificate, files.key).value()) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    DELAYD_CHECK(bind(listener_, address, size) == 0 && listen(listener_, 1) == 0);
    DELAYD_CHECK(getsockname(listener_, address, &size) == 0);
    port_ = ntohs(name.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }

  ~BrokenTlsServer() {
    thread_.join();
    close(listener_);
  }

  BrokenTlsServer(const BrokenTlsServer&) = delete;
  BrokenTlsServer& operator=(const BrokenTlsServer&) = delete;

  std::string address() const { return "https://127.0.0.1:" + std::to_string(port_); }

 private:
  void Serve() {
    const int fd = accept(listener_, nullptr, nullptr);
    std::string heard;
    char buffer[4096];
    while (heard.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = read(fd, buffer, sizeof buffer);
      DELAYD_CHECK(count > 0);
      DELAYD_CHECK(channel_.Receive({buffer, static_cast<size_t>(count)}, &heard).ok());
      ScriptedServer::Write(fd, std::string(channel_.output()));
      channel_.Sent(channel_.output().size());
    }
    ScriptedServer::Write(fd, "HTTP/1.1 500 Oops\r\n\r\n");
    ScriptedServer::AwaitEnd(fd);
    close(fd);
  }

  TlsChannel channel_;
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(ClientTest, AConnectionWhoseTlsBreaksBehindAChangeMayHaveChangedSomething) {
  const test::TempDir dir;
  const test::CertificateFiles files = test::MakeCertificate(dir.path(), "server");
  for (const auto& [method, code] :
       {std::pair("POST", StatusCode::kUnknown), std::pair("GET", StatusCode::kUnavailable)}) {
    const BrokenTlsServer server(files);
    const auto client = std::move(Client::Create(server.address(), files.certificate)).value();
    const Status status = client->Call(method, "/v1/jobs", "", "", kLong).status();
    EXPECT_EQ(status.code(), code) << method << ": " << status.message();
    EXPECT_EQ(status.message().find(kMayBeDone) != std::string::npos, code == StatusCode::kUnknown);
  }
}

// A worker has a thousand.
TEST(ClientTest, ClientsOfOneAuthorityReadItOnce) {
  const test::TempDir dir;
  const test::CertificateFiles files = test::MakeCertificate(dir.path(), "server");
  const auto client = [&files] {
    return Client::Create("https://127.0.0.1:11380", files.certificate);
  };
  {
    const auto first = client();
    ASSERT_TRUE(first.ok());
    unlink(files.certificate.c_str());
    EXPECT_TRUE(client().ok());
  }
  EXPECT_FALSE(client().ok()) << "nobody has it any more";
}

TEST(ClientTest, ARuleThatForbidsTheNetworkIsNotTakenForTheRightsOfASocket) {
  Status status;
  bool refuses = false;
  std::thread([&] {
    refuses = test::RefuseCall(SYS_connect, EPERM);
    status = std::move(Client::Create("http://127.0.0.1:1"))
                 .value()
                 ->Call("GET", "/", "", "", kLong)
                 .status();
  }).join();
  if (!refuses) {
    GTEST_SKIP() << "nobody may filter here";
  }
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("firewall"), Not(HasSubstr("socket"))));
}

TEST(ClientTest, NobodyThereIsUnreachableWithTheCure) {
  const auto client = std::move(Client::Create("unix:/nonexistent/d.sock")).value();
  const Status status = client->Call("GET", "/", "", "", kLong).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.reason(), "unreachable");
  EXPECT_EQ(
      status.message(),
      "cannot reach delayd at unix:/nonexistent/d.sock: there is no such socket; start delayd "
      "(systemctl start delayd; restart it where it runs and its socket was removed), or give its "
      "address with --server or DELAYCTL_SERVER");
  const auto tcp = std::move(Client::Create("http://127.0.0.1:1")).value();
  EXPECT_THAT(tcp->Call("GET", "/", "", "", kLong).status().message(),
              HasSubstr("nothing listens there"));
}

}  // namespace
}  // namespace delayd::protocol

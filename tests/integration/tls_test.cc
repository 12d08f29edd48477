// TLS as clients meet it, on loopback: with certificates made here.
#include <csignal>
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/client.h"
#include "tests/support/certificate.h"
#include "tests/support/daemon.h"
#include "tests/support/socket_client.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kToken = "e0123456789abcdef0123456789abcdef";

std::string TlsSettings(const CertificateFiles& files) {
  return "tls: { certificate: " + YamlText(files.certificate) + ", key: " + YamlText(files.key) +
         " }\n";
}

class TlsDaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = MakeCertificate(daemon_.Path(""), "server", "DNS:localhost");
    daemon_.Write("tokens", "enqueue " + kToken + "\n");
    daemon_.Write("token", kToken + "\n");
    Start();
  }

  void Start(const std::string& more_settings = "") {
    const std::string config = daemon_.Write(
        "config.yaml",
        TlsSettings(files_) + "access: { token_file: " + YamlText(daemon_.Path("tokens")) + " }\n" +
            more_settings);
    ASSERT_TRUE(daemon_.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
    const std::string address = daemon_.TcpAddress();
    ASSERT_TRUE(address.starts_with("https://")) << address;
    port_ = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  std::string Address(const std::string& host, const std::string& scheme = "https") const {
    return scheme + "://" + host + ":" + std::to_string(port_);
  }

  ProcessResult Ctl(const std::string& server,
                    const std::string& ca_file,
                    std::vector<std::string> args,
                    const std::string& stdin_text = "") {
    args.insert(args.begin(), {"--server", server, "--token-file", daemon_.Path("token")});
    if (!ca_file.empty()) {
      args.insert(args.begin(), {"--ca-file", ca_file});
    }
    return daemon_.Ctl(args, stdin_text);
  }

  SocketClient Connect() const { return SocketClient::Tcp(port_); }

  Daemon daemon_;
  CertificateFiles files_;
  uint16_t port_ = 0;
};

TEST_F(TlsDaemonTest, DelayctlEnqueuesListsAndWorksThroughIt) {
  const std::string server = Address("localhost");
  const ProcessResult enqueued =
      Ctl(server, files_.certificate, {"enqueue", "-q", "-"}, std::string(500'000, 'p'));
  EXPECT_EQ(enqueued.exit_code, 0) << enqueued.err;
  const ProcessResult shown = Ctl(server, files_.certificate, {"show", "1", "-o", "json"});
  EXPECT_THAT(shown.out, HasSubstr(std::string(500'000, 'p')));
  const ProcessResult leased = Ctl(server, files_.certificate, {"lease", "-o", "json"});
  EXPECT_EQ(leased.exit_code, 0) << leased.err;
  EXPECT_EQ(daemon_.Ctl({"ping"}).exit_code, 0) << "the Unix socket has no TLS";
}

TEST_F(TlsDaemonTest, OneConnectionServesManyRequests) {
  auto client = protocol::Client::Create(Address("localhost"), files_.certificate);
  ASSERT_TRUE(client.ok()) << client.status().message();
  (*client)->UseToken(kToken);
  for (int i = 0; i < 100; ++i) {
    const auto answer = (*client)->Call("GET", "/v1/stats", "", "", Millis(30'000));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    ASSERT_EQ(answer->status, 200);
  }
  const auto page = (*client)->Call("GET", "/metrics", "", "", Millis(30'000));
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->body, HasSubstr("\ndelayd_tls_handshakes_total 1\n"));
  EXPECT_THAT(page->body, HasSubstr("\ndelayd_tls_failures_total 0\n"));
}

TEST_F(TlsDaemonTest, WhoIsNotWhoItShouldBeIsNotTalkedTo) {
  const ProcessResult unknown = Ctl(Address("localhost"), "", {"ping"});
  EXPECT_EQ(unknown.exit_code, 5);
  EXPECT_THAT(unknown.err, HasSubstr("--ca-file"));
  const ProcessResult other = Ctl(Address("127.0.0.1"), files_.certificate, {"ping"});
  EXPECT_EQ(other.exit_code, 5) << "the certificate is for localhost";
  EXPECT_THAT(other.err, HasSubstr("certificate"));
  EXPECT_EQ(Ctl(Address("localhost"), daemon_.Path("nowhere.pem"), {"ping"}).exit_code, 2);
}

TEST_F(TlsDaemonTest, WithoutTlsNothingIsAnsweredButThatItIsNeeded) {
  const ProcessResult plain = Ctl(Address("localhost", "http"), "", {"ping"});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_THAT(plain.err, HasSubstr("https://"));
  SocketClient client = Connect();
  client.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("HTTP/1.1 400"), HasSubstr("ask with https://")));
}

TEST_F(TlsDaemonTest, TokensAreNeededAllTheSame) {
  const ProcessResult refused =
      daemon_.Ctl({"--server", Address("localhost"), "--ca-file", files_.certificate, "stats"});
  EXPECT_EQ(refused.exit_code, 7) << refused.err;
}

// Itself it is the receiver, and answers that it knows nobody without a token.
TEST_F(TlsDaemonTest, AWebhookWhoseCertificateIsNotBelievedCostsNoAttempt) {
  daemon_.CtlOk({"enqueue", "--queue", "q", "x"});
  daemon_.CtlOk({"enqueue", "--queue", "q", "y"});
  const auto work = [this](const std::vector<std::string>& more) {
    std::vector<std::string> args = {
        "work", "--queue", "q", "--webhook", Address("localhost") + "/hook", "--allow-private"};
    args.insert(args.end(), more.begin(), more.end());
    return daemon_.Ctl(args);
  };
  const ProcessResult unknown = work({"--drain"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("start the worker with --webhook-ca-file"));
  EXPECT_THAT(daemon_.CtlOk({"show", "1", "-o", "json"}), HasSubstr(R"("attempt":0)"));
  EXPECT_THAT(work({"--count", "1", "--webhook-ca-file", files_.certificate}).err,
              HasSubstr("nack (webhook answered 401"));
  EXPECT_EQ(work({"--webhook-ca-file", daemon_.Path("nowhere.pem")}).exit_code, 2);
}

TEST_F(TlsDaemonTest, WhoComesAboveTheLimitIsToldByAnAlert) {
  EXPECT_EQ(daemon_.Stop().exit_code, 0);
  Start("limits: { connections: 8 }\n");
  // Who has asked for something may be silent for minutes, and others for seconds.
  std::vector<std::unique_ptr<protocol::Client>> crowd;
  for (int i = 0; i < 7; ++i) {
    auto client = protocol::Client::Create(Address("localhost"), files_.certificate);
    ASSERT_TRUE(client.ok()) << client.status().message();
    ASSERT_TRUE((*client)->Call("GET", "/healthz", "", "", Millis(30'000)).ok());
    crowd.push_back(std::move(client).value());
  }
  const ProcessResult refused = Ctl(Address("localhost"), files_.certificate, {"ping"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, HasSubstr("too many connections"));
  daemon_.WaitForLog("connections are refused");
}

TEST_F(TlsDaemonTest, SlowHandshakesAreEnded) {
  SocketClient silent = Connect();
  SocketClient slow = Connect();
  slow.Send({"\x16\x03\x01\x02\x00\x01", 6});  // a client's first words, and no more
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_EQ(Ctl(Address("localhost"), files_.certificate, {"ping"}).exit_code, 0);
}

TEST_F(TlsDaemonTest, AReloadShowsTheRenewedCertificateAndABrokenOneChangesNothing) {
  const std::string old = daemon_.Write("old.crt", ReadFile(files_.certificate));
  MakeCertificate(daemon_.Path(""), "server", "DNS:localhost");
  EXPECT_EQ(Ctl(Address("localhost"), old, {"ping"}).exit_code, 0) << "not before it is asked to";
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the certificate was reloaded");
  EXPECT_EQ(Ctl(Address("localhost"), files_.certificate, {"ping"}).exit_code, 0);
  EXPECT_EQ(Ctl(Address("localhost"), old, {"ping"}).exit_code, 5);

  const std::string trusted = daemon_.Write("trusted.crt", ReadFile(files_.certificate));
  daemon_.Write("server.crt", "no certificate\n");
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the certificate was not reloaded");
  EXPECT_THAT(daemon_.log(), HasSubstr("config.yaml:1:21: tls.certificate: "));
  EXPECT_EQ(Ctl(Address("localhost"), trusted, {"ping"}).exit_code, 0);
}

TEST(TlsStartTest, ACertificateThatHasExpiredIsToldAndServesOn) {
  Daemon daemon;
  const CertificateFiles files =
      MakeCertificate(daemon.Path(""), "server", "DNS:localhost", /*days=*/-1);
  const std::string config = daemon.Write("config.yaml", TlsSettings(files));
  const ProcessResult check = daemon.Ctl({"config", "check", config});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.err, HasSubstr("has ended at"));
  ASSERT_TRUE(daemon.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
  daemon.WaitForLog("error the certificate has expired");
  for (const char* verb : {"status", "doctor"}) {
    EXPECT_THAT(daemon.Ctl({verb}).out, HasSubstr("certificate_expired")) << verb;
  }
  EXPECT_THAT(daemon.CtlOk({"top", "--once", "--interval", "100ms"}),
              HasSubstr("certificate_expired"));
  EXPECT_EQ(daemon.Ctl({"ping"}).exit_code, 0);
}

TEST(TlsStartTest, ACertificateThatEndsSoonIsAWarning) {
  Daemon daemon;
  const CertificateFiles files =
      MakeCertificate(daemon.Path(""), "server", "DNS:localhost", /*days=*/1);
  const std::string config = daemon.Write("config.yaml", TlsSettings(files));
  const ProcessResult check = daemon.Ctl({"config", "check", config});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.err, HasSubstr("clients will refuse it; renew it"));
  ASSERT_TRUE(daemon.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
  daemon.WaitForLog("the certificate ends soon");
  EXPECT_THAT(daemon.Ctl({"doctor"}).out,
              HasSubstr("warn  daemon   answers: degraded; certificate_ends_soon"));
}

TEST(TlsStartTest, AKeyThatEverybodyCanReadIsNotUsed) {
  Daemon daemon;
  const CertificateFiles files = MakeCertificate(daemon.Path(""), "server");
  ASSERT_EQ(::chmod(files.key.c_str(), 0644), 0);
  const ProcessResult start =
      daemon.StartExpectingFailure({"--config", daemon.Write("config.yaml", TlsSettings(files))});
  EXPECT_EQ(start.exit_code, 2) << start.err;
  EXPECT_THAT(start.err, HasSubstr("chmod o-rw"));
}

}  // namespace
}  // namespace delayd::test

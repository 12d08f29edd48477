#include "daemon/tls_session.h"

#include <malloc.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "tests/support/certificate.h"
#include "tests/support/plain_report.h"
#include "tests/support/raw_tls_client.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/now.h"

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /v1/jobs/1 HTTP/1.1\r\nHost: d\r\n\r\n";

class TlsSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(door_.Load().ok());
    session_ = door_.Wrap(std::make_unique<http::HttpSession>(options_, router_));
  }

  // Moves bytes both ways until nobody has more to say.
  void Talk() {
    while (!client_.output().empty() || !session_->output().empty()) {
      const std::string up(client_.output());
      client_.Sent(up.size());
      if (!up.empty()) {
        session_->Receive(up);
      }
      while (std::optional<SessionRequest> request = session_->Next(kNow)) {
        requests_.push_back(*std::move(request));
      }
      const std::string down(session_->output());
      session_->Sent(down.size());
      if (!down.empty()) {
        client_status_ = client_.Receive(down, &heard_);
      }
    }
  }

  void Ask(std::string_view text) {
    ASSERT_TRUE(client_.Send(text).ok());
    Talk();
  }

  void Answer(size_t index, size_t payload_bytes = 1) {
    engine::Reply reply;
    reply.body =
        JobView{.id = JobId{1}, .payload = std::string(payload_bytes, 'x'), .payload_bytes = 1};
    session_->Answer(requests_.at(index).tag, reply);
  }

  test::TempDir dir_;
  const test::CertificateFiles files_ = test::MakeCertificate(dir_.path(), "ours");
  TlsDoor door_{files_.certificate, files_.key};
  const http::ReaderOptions options_{};
  const http::Router router_{http::RouterOptions{.service = &test::kPlainReport}};
  std::unique_ptr<Session> session_;
  protocol::TlsChannel client_{protocol::TlsContext::ForClient(files_.certificate).value(),
                               "localhost"};
  Status client_status_;
  std::string heard_;
  std::vector<SessionRequest> requests_;
};

TEST_F(TlsSessionTest, ARequestAndItsAnswerPassThrough) {
  EXPECT_EQ(session_->phase(), Session::Phase::kHead) << "a handshake is under way";
  EXPECT_TRUE(session_->greets());
  Talk();
  EXPECT_FALSE(session_->greets());
  EXPECT_EQ(session_->phase(), Session::Phase::kIdle);
  Ask(kGet);
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(session_->phase(), Session::Phase::kWorking);
  Answer(0, 300'000);
  Talk();
  EXPECT_THAT(heard_, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_GT(heard_.size(), 300'000U);
  EXPECT_EQ(session_->phase(), Session::Phase::kIdle);
  EXPECT_EQ(door_.figures().handshakes, 1U);
  EXPECT_EQ(door_.figures().failed, 0U);
}

TEST_F(TlsSessionTest, AnAnswerThatIsNotReadIsEncipheredOnlyInPart) {
  Talk();
  Ask(kGet);
  Answer(0, 10'000'000);
  EXPECT_LT(session_->output().size(), 200'000U);
  EXPECT_FALSE(session_->wants_input());
  EXPECT_EQ(session_->phase(), Session::Phase::kWorking);
}

TEST_F(TlsSessionTest, ASlowHandshakeIsEndedWithoutAWord) {
  session_->Refuse(DeadlineExceeded("send it at once", "request_timeout"));
  EXPECT_TRUE(session_->finished());
  EXPECT_EQ(session_->phase(), Session::Phase::kIdle) << "no handshake is waited for";
  EXPECT_EQ(session_->output(), "");
  EXPECT_EQ(door_.figures().failed, 1U);
}

TEST_F(TlsSessionTest, ASlowRequestIsToldSoThroughTls) {
  Talk();
  Ask("GET /v1/jo");
  EXPECT_EQ(session_->phase(), Session::Phase::kHead);
  session_->Refuse(DeadlineExceeded("send it at once", "request_timeout"));
  EXPECT_TRUE(session_->finished());
  Talk();
  EXPECT_THAT(heard_, StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(client_.peer_closed());
}

TEST_F(TlsSessionTest, ARequestInTheClearIsToldSoInTheClear) {
  session_->Receive(kGet);
  EXPECT_FALSE(session_->Next(kNow).has_value());
  EXPECT_TRUE(session_->finished());
  EXPECT_THAT(std::string(session_->output()),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("ask with https://")));
  session_->Receive(kGet);
  session_->Sent(session_->output().size());
  EXPECT_EQ(session_->output(), "");
  EXPECT_EQ(door_.figures().failed, 1U);
}

TEST_F(TlsSessionTest, WhoeverDoesNotSpeakTlsIsEnded) {
  session_->SetPeer({.address = "192.0.2.1:4711"});
  session_->Receive("\x01garbage");
  EXPECT_FALSE(session_->Next(kNow).has_value());
  EXPECT_TRUE(session_->finished());
  EXPECT_TRUE(session_->wants_input()) << "to notice that the client goes";
  EXPECT_EQ(session_->output().find("HTTP/1.1"), std::string_view::npos);
  EXPECT_EQ(door_.figures().failed, 1U);
  EXPECT_EQ(door_.last_failed()->last_peer, "192.0.2.1:4711");
  EXPECT_NE(door_.last_failed()->last_cause, "");
}

TEST_F(TlsSessionTest, WhatBreaksInTheMiddleLosesNoAnswerOfTheEngine) {
  Talk();
  Ask(kGet);
  constexpr std::string_view kHead("\x17\x03\x03\x00\x20", 5);  // application data, 32 bytes
  session_->Receive(std::string(kHead) + std::string(32, 'x'));
  EXPECT_TRUE(session_->finished());
  Answer(0);  // nobody hears it, and nothing breaks
  EXPECT_TRUE(session_->finished());
}

TEST_F(TlsSessionTest, AClientThatSaysGoodbyeGetsItsAnswersAndAGoodbye) {
  Talk();
  ASSERT_TRUE(client_.Send(kGet).ok());
  client_.Close();
  Talk();
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_FALSE(session_->finished());
  Answer(0);
  EXPECT_TRUE(session_->finished());
  Talk();
  EXPECT_THAT(heard_, HasSubstr("200 OK"));
  EXPECT_TRUE(client_.peer_closed());
}

TEST_F(TlsSessionTest, P10WhatComesBehindAGoodbyeIsNotKept) {
  const auto allocated = [] {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  Talk();
  Ask(kGet);
  client_.Close();
  Talk();
  const std::string noise(size_t{1} << 20, 'x');
  const size_t before = allocated();
  for (int i = 0; i < 32; ++i) {
    session_->Receive(noise);
  }
  EXPECT_LT(allocated(), before + 4 * noise.size());
  Answer(0);
  Talk();
  EXPECT_THAT(heard_, StartsWith("HTTP/1.1 200 OK\r\n"));
}

// A message behind the handshake in two records: between them OpenSSL is in a handshake again.
class TlsSessionCutMessageTest : public TlsSessionTest {
 protected:
  using Type = test::RawTlsClient::Type;

  static constexpr std::string_view kMessage = test::RawTlsClient::kKeyUpdate;

  // A new client asks, sends the first part of the message, and is answered.
  void AskAndCut(size_t cut) {
    session_ = door_.Wrap(std::make_unique<http::HttpSession>(options_, router_));
    raw_.emplace();
    for (std::string up = raw_->Exchange(""); !up.empty(); up = Hear()) {
      session_->Receive(up);
    }
    std::string records = raw_->Record(Type::kApplicationData, kGet);
    records += raw_->Record(Type::kHandshake, kMessage.substr(0, cut));
    session_->Receive(records);
    requests_ = {session_->Next(kNow).value()};
    Answer(0);
  }

  void SendRest(size_t cut) {
    session_->Receive(raw_->Record(Type::kHandshake, kMessage.substr(cut)));
  }

  std::string Hear() {
    const std::string down(session_->output());
    session_->Sent(down.size());
    return raw_->Exchange(down);
  }

  std::optional<test::RawTlsClient> raw_;
};

TEST_F(TlsSessionCutMessageTest, AnAnswerWaitsForTheRest) {
  for (size_t cut = 1; cut < kMessage.size(); ++cut) {
    SCOPED_TRACE(cut);
    AskAndCut(cut);
    Hear();
    EXPECT_FALSE(session_->finished());
    EXPECT_TRUE(session_->wants_input());
    SendRest(cut);
    Hear();
    EXPECT_THAT(raw_->heard(), StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(session_->phase(), Session::Phase::kIdle);
  }
}

TEST_F(TlsSessionCutMessageTest, TheRestIsNotWaitedForForEver) {
  AskAndCut(kMessage.size() - 1);
  EXPECT_EQ(session_->phase(), Session::Phase::kHead);
  session_->Refuse(DeadlineExceeded("send it at once", "request_timeout"));
  EXPECT_TRUE(session_->finished());
  EXPECT_EQ(door_.figures().failed, 1U);
}

TEST_F(TlsSessionCutMessageTest, AStopDoesNotWaitForTheRest) {
  AskAndCut(kMessage.size() - 1);
  session_->Stop();
  EXPECT_TRUE(session_->finished());
}

TEST_F(TlsSessionTest, StopInTheHandshakeEndsIt) {
  session_->Stop();
  EXPECT_TRUE(session_->finished());
}

TEST_F(TlsSessionTest, ARenewedCertificateIsShownToNewClientsAndABadOneIsNot) {
  test::MakeCertificate(dir_.path(), "ours");  // another one, under the same names
  ASSERT_TRUE(door_.Load().ok());
  Talk();
  EXPECT_TRUE(client_.established()) << "who came before goes on with what was shown then";

  protocol::TlsChannel fresh(protocol::TlsContext::ForClient(files_.certificate).value(),
                             "localhost");
  test::ReplaceKeyByRsa(files_);
  EXPECT_FALSE(door_.Load().ok()) << "a key of another type than the certificate";
  ASSERT_EQ(::truncate(files_.certificate.c_str(), 0), 0);
  EXPECT_FALSE(door_.Load().ok());
  session_ = door_.Wrap(std::make_unique<http::HttpSession>(options_, router_));
  client_ = std::move(fresh);
  Talk();
  EXPECT_TRUE(client_.established()) << client_status_.message();
}

TEST_F(TlsSessionTest, AFileThatCannotBeUsedIsToldWithThePlaceThatNamesIt) {
  const auto load = [](const std::string& certificate, const std::string& key) {
    return TlsDoor(certificate, key).Load([](std::string_view name) {
      return "d.yaml:" + std::string(name);
    });
  };
  const test::CertificateFiles other = test::MakeCertificate(dir_.path(), "other");
  EXPECT_THAT(load("/nowhere", files_.key).message(), StartsWith("d.yaml:tls.certificate: cannot"));
  EXPECT_THAT(load(files_.certificate, "/nowhere").message(), StartsWith("d.yaml:tls.key: "));
  EXPECT_THAT(load(files_.certificate, other.key).message(), StartsWith("d.yaml:tls.key: cannot"));
}

TEST_F(TlsSessionTest, TheEndOfTheCertificateIsToldOnceWhenItComes) {
  const WallTime end = *door_.figures().certificate_end;
  EXPECT_EQ(door_.NoteEnd(end - Millis(1)).reason(), "certificate_ends_soon");
  EXPECT_EQ(door_.NoteEnd(end).reason(), "certificate_expired");
  EXPECT_TRUE(door_.NoteEnd(end + Millis(1)).ok()) << "one line, not one a turn";
  EXPECT_FALSE(door_.CheckEnd(end).ok());
  ASSERT_TRUE(door_.Load().ok());
  EXPECT_FALSE(door_.NoteEnd(end).ok()) << "the same files again: the reload says so";
}

TEST_F(TlsSessionTest, ACertificateThatIsNotValidYetIsToldOnce) {
  using Days = std::chrono::days;
  const WallTime begin = *door_.figures().certificate_end - Days(20);
  EXPECT_EQ(door_.NoteEnd(begin - Millis(1)).reason(), "certificate_not_yet_valid");
  EXPECT_TRUE(door_.NoteEnd(begin - Millis(1)).ok());
  EXPECT_EQ(door_.CheckEnd(begin - Millis(1)).reason(), "certificate_not_yet_valid");
  EXPECT_TRUE(door_.NoteEnd(begin).ok());
  EXPECT_EQ(door_.NoteEnd(begin + Days(16)).reason(), "certificate_ends_soon") << "all the same";
}

TEST_F(TlsSessionTest, ACertificateThatEndsSoonIsToldOnce) {
  using Days = std::chrono::days;
  const WallTime end = *door_.figures().certificate_end;
  const WallTime soon = end - Days(4);  // a fifth of its 20 days
  EXPECT_TRUE(door_.NoteEnd(soon - Millis(1)).ok());
  EXPECT_EQ(door_.NoteEnd(soon).reason(), "certificate_ends_soon");
  EXPECT_TRUE(door_.NoteEnd(soon + Millis(1)).ok()) << "one line, not one a turn";
  EXPECT_EQ(door_.CheckEnd(soon + Millis(1)).reason(), "certificate_ends_soon");

  test::MakeCertificate(dir_.path(), "ours", "DNS:localhost", 90);
  ASSERT_TRUE(door_.Load().ok());
  const WallTime renewed = *door_.figures().certificate_end;
  EXPECT_TRUE(door_.NoteEnd(renewed - Days(14) - Millis(1)).ok());
  EXPECT_THAT(door_.NoteEnd(renewed - Days(14)).message(), HasSubstr("renew it"));
}

}  // namespace
}  // namespace delayd

#include "protocol/tls.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/certificate.h"
#include "tests/support/raw_tls_client.h"
#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd::protocol {
namespace {

using ::delayd::test::CertificateFiles;
using ::delayd::test::MakeCertificate;
using ::delayd::test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One end of a conversation without a network.
struct End {
  explicit End(const TlsContext::Ptr& context) : channel(context) {}

  End(const TlsContext::Ptr& context, const std::string& host) : channel(context, host) {}

  // Takes what the other end has to say, `step` bytes at a time.
  void TakeFrom(End* other, size_t step) {
    while (!other->channel.output().empty()) {
      const std::string bytes(other->channel.output().substr(0, step));
      other->channel.Sent(bytes.size());
      if (status.ok()) {
        status = channel.Receive(bytes, &heard);
      }
    }
  }

  TlsChannel channel;
  std::string heard;
  Status status;
};

void Talk(End* a, End* b, size_t step = 4096) {
  while (!a->channel.output().empty() || !b->channel.output().empty()) {
    b->TakeFrom(a, step);
    a->TakeFrom(b, step);
  }
}

class TlsTest : public ::testing::Test {
 protected:
  static TlsContext::Ptr Server(const CertificateFiles& files) {
    return TlsContext::ForServer(files.certificate, files.key).value();
  }

  static TlsContext::Ptr Client(const CertificateFiles& trusted) {
    return TlsContext::ForClient(trusted.certificate).value();
  }

  // What the client says of a server with these files.
  Status Verdict(const CertificateFiles& shown,
                 const CertificateFiles& trusted,
                 const std::string& host) {
    End server(Server(shown));
    End client(Client(trusted), host);
    Talk(&client, &server);
    EXPECT_EQ(client.channel.established(), client.status.ok());
    if (!client.status.ok()) {
      EXPECT_FALSE(server.channel.established() && server.status.ok()) << "the server is told";
    }
    return client.status;
  }

  TempDir dir_;
  const CertificateFiles ours_ = MakeCertificate(dir_.path(), "ours");
};

TEST_F(TlsTest, BothSidesHearWhatTheOtherSaysHoweverTheBytesArrive) {
  for (const size_t step : {size_t{1}, size_t{7}, size_t{100'000}}) {
    End server(Server(ours_));
    End client(Client(ours_), "localhost");
    Talk(&client, &server, step);
    ASSERT_TRUE(client.channel.established()) << client.status.message();
    ASSERT_TRUE(server.channel.established()) << server.status.message();
    const std::string large(200'000, 'x');
    ASSERT_TRUE(client.channel.Send("hello").ok());
    ASSERT_TRUE(server.channel.Send(large).ok());
    EXPECT_EQ(client.channel.output().find("hello"), std::string_view::npos);
    Talk(&client, &server, step);
    EXPECT_EQ(server.heard, "hello");
    EXPECT_EQ(client.heard, large);
  }
}

TEST_F(TlsTest, TheCertificateMustBeForTheHost) {
  EXPECT_TRUE(Verdict(ours_, ours_, "localhost").ok());
  EXPECT_TRUE(Verdict(ours_, ours_, "127.0.0.1").ok());
  for (const char* other : {"example.com", "127.0.0.2", "::1", "localhost.example.com"}) {
    const Status status = Verdict(ours_, ours_, other);
    EXPECT_EQ(status.reason(), "tls_failed") << other;
    EXPECT_THAT(status.message(), HasSubstr("certificate is refused")) << other;
    EXPECT_THAT(status.message(), HasSubstr("use the name or address that it is for")) << other;
  }
}

TEST_F(TlsTest, TheCertificateMustBeOfSomebodyTrustedAndValid) {
  const CertificateFiles stranger = MakeCertificate(dir_.path(), "stranger");
  EXPECT_THAT(Verdict(stranger, ours_, "localhost").message(),
              AllOf(HasSubstr("self-signed"), HasSubstr("--ca-file")));
  const CertificateFiles old = MakeCertificate(dir_.path(), "old", "DNS:localhost", -1);
  EXPECT_THAT(Verdict(old, old, "localhost").message(),
              AllOf(HasSubstr("expired; renew it"), Not(HasSubstr("--ca-file"))));
}

// A client that refuses the certificate says so, and it does speak TLS.
TEST_F(TlsTest, AnAlertOfTheOtherSideIsNotTakenForSomethingElseThanTls) {
  const CertificateFiles stranger = MakeCertificate(dir_.path(), "stranger");
  End server(Server(stranger));
  End client(Client(ours_), "localhost");
  Talk(&client, &server);
  EXPECT_EQ(server.status.reason(), "tls_failed");
  EXPECT_THAT(server.status.message(),
              AllOf(HasSubstr("the other side ended TLS: "),
                    HasSubstr("unknown ca; it does not trust the certificate"),
                    Not(HasSubstr("no TLS"))));
}

TEST_F(TlsTest, WhatIsNoTlsFailsAndStaysFailed) {
  End server(Server(ours_));
  std::string heard;
  const Status status = server.channel.Receive("GET / HTTP/1.1\r\n\r\n", &heard);
  EXPECT_EQ(status.reason(), "tls_failed");
  EXPECT_THAT(status.message(), HasSubstr("check that it speaks TLS"));
  EXPECT_FALSE(server.channel.established());
  EXPECT_FALSE(server.channel.Receive("more", &heard).ok());
  EXPECT_EQ(heard, "");
}

TEST_F(TlsTest, AnEndThatWasMeantIsToldFromACut) {
  End server(Server(ours_));
  End client(Client(ours_), "localhost");
  Talk(&client, &server);
  EXPECT_FALSE(client.channel.peer_closed());
  server.channel.Close();
  Talk(&client, &server);
  EXPECT_TRUE(client.channel.peer_closed());
  EXPECT_FALSE(server.channel.peer_closed());
}

TEST_F(TlsTest, NothingIsSaidWhileAMessageOfThePeerHasComeInPart) {
  using Raw = ::delayd::test::RawTlsClient;
  Raw client;
  End server(Server(ours_));
  const auto hear = [&client, &server] {
    const std::string bytes(server.channel.output());
    server.channel.Sent(bytes.size());
    return client.Exchange(bytes);
  };
  for (std::string bytes = client.Exchange(""); !bytes.empty(); bytes = hear()) {
    ASSERT_TRUE(server.channel.Receive(bytes, &server.heard).ok());
  }
  const auto send = [&](std::string_view part) {
    return server.channel.Receive(client.Record(Raw::Type::kHandshake, part), &server.heard);
  };
  ASSERT_TRUE(send(Raw::kKeyUpdate.substr(0, 4)).ok());  // its head
  EXPECT_EQ(server.channel.Send("no").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(send(Raw::kKeyUpdate.substr(4)).ok());
  ASSERT_TRUE(server.channel.Send("yes").ok());
  hear();
  EXPECT_EQ(client.heard(), "yes");
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamedWithTheCure) {
  const auto server = [](const std::string& certificate, const std::string& key) {
    return TlsContext::ForServer(certificate, key).status();
  };
  EXPECT_THAT(server("/nowhere.crt", ours_.key).message(), HasSubstr("/nowhere.crt"));
  EXPECT_THAT(server(ours_.certificate, "/nowhere.key").message(), HasSubstr("/nowhere.key"));
  const CertificateFiles other = MakeCertificate(dir_.path(), "other");
  EXPECT_THAT(server(ours_.certificate, other.key).message(), HasSubstr("belong to"));
  EXPECT_THAT(TlsContext::ForClient("/nowhere.pem").status().message(),
              HasSubstr("/nowhere.pem: No such file or directory; it must be"));
  const std::string pipe = dir_.Sub("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(server(pipe, ours_.key).message(), HasSubstr(pipe + ": it is no regular file"));
  EXPECT_THAT(server(ours_.certificate, pipe).message(),
              HasSubstr(pipe + ": it is no regular file"));
  ASSERT_EQ(::chmod(ours_.key.c_str(), 0644), 0);
  EXPECT_EQ(server(ours_.certificate, ours_.key).code(), StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace delayd::protocol

#include "daemon/passed_sockets.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/socket_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unix_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace delayd {
namespace {

using test::SocketClient;
using ::testing::HasSubstr;

class PassedSocketsTest : public ::testing::Test {
 protected:
  // A listening socket as a socket unit would have made it.
  UniqueFd Unix() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    const sockaddr_un address = test::UnixAddress(path_);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
  }

  static UniqueFd Tcp(in_addr_t host) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
  }

  static PassedSockets Of(std::string name, UniqueFd fd) {
    std::vector<PassedSocket> sockets;
    sockets.push_back({std::move(name), std::move(fd)});
    return PassedSockets(std::move(sockets));
  }

  test::TempDir directory_;
  std::string path_ = directory_.Sub("d.sock");
};

TEST_F(PassedSocketsTest, PassedSocketServesAndItsFileOutlivesTheListener) {
  PassedSockets passed = Of("api", Unix());
  {
    StatusOr<std::optional<Listener>> listener = passed.Unix("api", {"api.socket", path_});
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    ASSERT_TRUE(listener->has_value());
    EXPECT_EQ((*listener)->name(), "unix:" + path_);
    EXPECT_FALSE((*listener)->is_tcp());
    EXPECT_TRUE(SocketClient(path_).connected());
    // The turn must never block in accept.
    EXPECT_NE(::fcntl((*listener)->fd(), F_GETFL) & O_NONBLOCK, 0);
  }
  EXPECT_TRUE(passed.CheckAllTaken().ok());
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(PassedSocketsTest, APathThatFillsTheAddressIsReadToItsEnd) {
  path_.resize(sizeof sockaddr_un().sun_path, 'k');
  PassedSockets passed = Of("api", Unix());
  const StatusOr<std::optional<Listener>> listener = passed.Unix("api", {"api.socket", ""});
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_EQ((*listener)->name(), "unix:" + path_);
}

TEST_F(PassedSocketsTest, AnEmptySettingTakesWhatIsPassed) {
  PassedSockets passed = Of("api", Tcp(INADDR_LOOPBACK));
  const StatusOr<std::optional<Listener>> unix_socket = passed.Unix("api", {"api.socket", ""});
  ASSERT_TRUE(unix_socket.ok());
  EXPECT_FALSE(unix_socket->has_value());
  const StatusOr<std::optional<Listener>> tcp = passed.Tcp("api", {"api.listen", ""});
  ASSERT_TRUE(tcp.ok()) << tcp.status().message();
  EXPECT_TRUE((*tcp)->is_tcp());
  EXPECT_THAT((*tcp)->name(), HasSubstr("http://127.0.0.1:"));
}

TEST_F(PassedSocketsTest, AnAddressMayBeSpelledOtherwiseThanTheConfigurationDoes) {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), any, size) != 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  ASSERT_EQ(::listen(fd.get(), 8), 0);
  ASSERT_EQ(::getsockname(fd.get(), any, &size), 0);
  const std::string port = std::to_string(ntohs(address.sin6_port));
  PassedSockets passed = Of("api", std::move(fd));
  const auto tcp = passed.Tcp("api", {"api.listen", "[0:0:0:0:0:0:0:1]:" + port});
  ASSERT_TRUE(tcp.ok()) << tcp.status().message();
  EXPECT_EQ((*tcp)->name(), "http://[::1]:" + port);
}

TEST_F(PassedSocketsTest, ContradictionToTheConfigurationIsRefused) {
  PassedSockets passed = Of("api", Unix());
  const auto listener = passed.Unix("api", {"api.socket", directory_.path() + "/other.sock"});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), HasSubstr("but api.socket is"));
  // An empty api.socket would be refused where api.listen is empty, too.
  EXPECT_THAT(listener.status().message(),
              HasSubstr("; give both the same address, or turn the socket unit off"));
  EXPECT_EQ(listener.status().reason(), "passed_socket");
}

TEST_F(PassedSocketsTest, SocketThatNothingUsesIsRefused) {
  PassedSockets passed = Of("delayd.socket", Unix());
  const auto listener = passed.Unix("api", {"api.socket", directory_.path() + "/other.sock"});
  ASSERT_TRUE(listener.ok());
  const Status status = passed.CheckAllTaken();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("set FileDescriptorName=api"));
}

// As of a unit without FileDescriptorName=.
TEST_F(PassedSocketsTest, ANameThatNobodyKnowsIsRefusedBeforeAnythingIsOpened) {
  EXPECT_THAT(Of("delayd.socket", Unix()).CheckNames({"api", "beanstalk"}).message(),
              HasSubstr("named 'delayd.socket' that nothing uses; set FileDescriptorName=api"));
  EXPECT_TRUE(Of("beanstalk", Tcp(INADDR_LOOPBACK)).CheckNames({"api", "beanstalk"}).ok());
}

TEST_F(PassedSocketsTest, TcpBeyondLoopbackIsRefusedWithoutTlsAndTokens) {
  PassedSockets passed = Of("api", Tcp(INADDR_ANY));
  const auto listener = passed.Tcp("api", {"api.listen", ""});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), HasSubstr("only an HTTP API with TLS and tokens"));
}

TEST_F(PassedSocketsTest, SocketThatDoesNotListenIsRefused) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  PassedSockets passed = Of("api", std::move(fd));
  const auto listener = passed.Unix("api", {"api.socket", ""});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), HasSubstr("no listening stream socket"));
}

TEST_F(PassedSocketsTest, WithoutActivationNothingIsPassed) {
  ::unsetenv("LISTEN_PID");  // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("LISTEN_FDS");  // NOLINT(concurrency-mt-unsafe)
  const StatusOr<PassedSockets> passed = PassedSockets::FromEnvironment();
  ASSERT_TRUE(passed.ok());
  EXPECT_TRUE(passed->CheckAllTaken().ok());
}

}  // namespace
}  // namespace delayd

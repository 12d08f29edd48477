#include "daemon/listener.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused_call.h"
#include "tests/support/socket_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/unix_address.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace delayd {
namespace {

using test::SocketClient;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ListenerTest : public ::testing::Test {
 protected:
  test::TempDir directory_;
  std::string path_ = directory_.Sub("d.sock");
};

TEST_F(ListenerTest, SocketIsForOwnerAndGroup) {
  const mode_t before = ::umask(0077);
  const StatusOr<Listener> listener = Listener::OpenUnix(path_);
  ::umask(before);
  ASSERT_TRUE(listener.ok()) << listener.status().message();

  struct stat info {};

  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660U);
  EXPECT_TRUE(SocketClient(path_).connected());
  EXPECT_EQ(listener->name(), "unix:" + path_);
}

TEST_F(ListenerTest, SocketOfALivingDaemonIsLeftAlone) {
  const StatusOr<Listener> first = Listener::OpenUnix(path_);
  ASSERT_TRUE(first.ok());
  const StatusOr<Listener> second = Listener::OpenUnix(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().reason(), "socket_in_use");
  // Even without the lock: somebody answers on it.
  ::unlink((path_ + ".lock").c_str());
  EXPECT_EQ(Listener::OpenUnix(path_).status().reason(), "socket_in_use");
  EXPECT_TRUE(SocketClient(path_).connected());
}

TEST_F(ListenerTest, SocketOfADaemonThatOnlyStartsIsLeftAlone) {
  const UniqueFd lock(::open((path_ + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(Listener::OpenUnix(path_).status().reason(), "socket_in_use");
}

// On a file system of the network, say.
TEST_F(ListenerTest, ALockThatCannotBeTakenAtAllIsNoOtherDaemon) {
  const auto open = [this] {
    if (!test::RefuseCall(SYS_flock, ENOLCK)) {
      std::_Exit(77);
    }
    const Status status = Listener::OpenUnix(path_).status();
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::_Exit(status.reason() == "unavailable" ? 0 : 1);
  };
  EXPECT_EXIT(open(), ::testing::ExitedWithCode(0), "No locks available; .*d.sock.lock cannot be");
}

TEST_F(ListenerTest, SocketOfADeadDaemonIsReplaced) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = test::UnixAddress(path_);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  const StatusOr<Listener> listener = Listener::OpenUnix(path_);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_TRUE(SocketClient(path_).connected());
}

TEST_F(ListenerTest, FileThatIsNoSocketIsNeverRemoved) {
  std::ofstream(path_) << "precious";
  const StatusOr<Listener> listener = Listener::OpenUnix(path_);
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), HasSubstr("is not a socket"));
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(ListenerTest, MissingDirectoryIsNamedWithTheCure) {
  const StatusOr<Listener> listener = Listener::OpenUnix(directory_.path() + "/none/d.sock");
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), HasSubstr("/none/d.sock"));
  EXPECT_THAT(listener.status().message(), HasSubstr("create it"));
}

TEST_F(ListenerTest, ErrorsNameTheSettingAndTheCureThatFits) {
  const StatusOr<Listener> first = Listener::OpenUnix(path_);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(Listener::OpenUnix(path_, "beanstalk.socket").status().message(),
              HasSubstr("choose another beanstalk.socket"));
  // TEST-NET-1: no interface has an address of it.
  const std::string absent =
      Listener::OpenTcp("192.0.2.1:1025", Reach::kAnywhere, "api.listen").status().message();
  EXPECT_THAT(absent, HasSubstr("no network interface has this address"));
  EXPECT_THAT(absent, ::testing::Not(HasSubstr("stop whoever uses the port")));
  const StatusOr<Listener> port = Listener::OpenTcp("127.0.0.1:0");
  ASSERT_TRUE(port.ok());
  EXPECT_THAT(
      Listener::OpenTcp(port->address(), Reach::kLoopback, "beanstalk.listen").status().message(),
      HasSubstr("stop whoever uses the port, or choose another beanstalk.listen"));
}

TEST_F(ListenerTest, TheLogCallsItAsItsOwnerDoes) {
  StatusOr<Listener> listener = Listener::OpenTcp("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener->label(), listener->name());
  listener->set_label("https://" + listener->address());
  EXPECT_EQ(listener->label(), "https://" + listener->name().substr(sizeof "http://" - 1));
}

TEST_F(ListenerTest, SocketFileGoesWithItsListener) {
  { ASSERT_TRUE(Listener::OpenUnix(path_).ok()); }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

TEST_F(ListenerTest, TcpListensOnLoopbackOnlyUnlessToldOtherwise) {
  const StatusOr<Listener> listener = Listener::OpenTcp("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_THAT(listener->name(), StartsWith("http://127.0.0.1:"));
  EXPECT_NE(listener->name(), "http://127.0.0.1:0");
  EXPECT_FALSE(Listener::OpenTcp("0.0.0.0:0").ok());
  EXPECT_FALSE(Listener::OpenTcp("8.8.8.8:80").ok());
}

}  // namespace
}  // namespace delayd

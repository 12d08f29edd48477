#include "daemon/access.h"

#include <grp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errno_text.h"
#include "daemon/exit_codes.h"
#include "daemon/turned_away.h"
#include "tests/support/temp_dir.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kToken = "0123456789abcdef0123456789abcdef";

Access Make(const AccessOptions& options) {
  StatusOr<Access> access = Access::Create(options);
  EXPECT_TRUE(access.ok()) << access.status().message();
  return *std::move(access);
}

Peer User(uint32_t uid, std::vector<uint32_t> groups = {}) {
  return {.known = true, .uid = uid, .groups = std::move(groups)};
}

class TokenFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = dir_.Sub("tokens");
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  std::string ErrorOf(const std::string& text, mode_t mode = 0600) {
    const StatusOr<Access> access = Access::Create({.token_file = Write(text, mode)});
    EXPECT_FALSE(access.ok());
    return access.ok() ? "" : access.status().message();
  }

  test::TempDir dir_;
};

TEST(AccessTest, RootAndTheDaemonsOwnUserAreAdmins) {
  const Access access = Make({.others = Role::kNone});
  EXPECT_EQ(access.RoleOf(User(0)), Role::kAdmin);
  EXPECT_EQ(access.RoleOf(User(::geteuid())), Role::kAdmin);
  EXPECT_EQ(access.RoleOf(User(4711)), Role::kNone);
}

TEST(AccessTest, WhoCanOpenTheSocketMayUseJobsByDefault) {
  EXPECT_EQ(Make({}).RoleOf(User(4711)), Role::kEnqueue);
}

TEST(AccessTest, AListedUserOrGroupGetsItsHighestRole) {
  const Access access = Make({.read = "1001, @2002", .enqueue = "1001", .admin = "@3003"});
  EXPECT_EQ(access.RoleOf(User(1001)), Role::kEnqueue);
  EXPECT_EQ(access.RoleOf(User(5, {7, 2002})), Role::kRead) << "a list goes before the others";
  EXPECT_EQ(access.RoleOf(User(5, {2002, 3003})), Role::kAdmin);
  EXPECT_EQ(access.RoleOf(User(5, {7})), Role::kEnqueue);
}

TEST(AccessTest, NobodyUnknownIsAdmin) {
  EXPECT_EQ(Make({.others = Role::kAdmin}).RoleOf({}), Role::kEnqueue);
  EXPECT_EQ(Make({.others = Role::kRead}).RoleOf({}), Role::kRead);
}

TEST(AccessTest, NamesThatTheSystemDoesNotKnowAreErrors) {
  EXPECT_THAT(Access::Create({.admin = "no-such-user"}).status().message(),
              HasSubstr("access.admin: there is no user 'no-such-user'"));
  EXPECT_THAT(Access::Create({.read = "@no-such-group"}).status().message(),
              HasSubstr("access.read: there is no group"));
}

// In a child, which may open no file.
TEST(AccessTest, ANameThatCouldNotBeLookedUpIsNoMistakeOfTheConfiguration) {
  const auto ask = [](const std::string& name) {
    // UBSan looks at an object that it has not seen before by a pipe.
    static_cast<void>(ErrnoText(EMFILE));
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const Status status = Access::Create({.admin = name}).status();
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::_Exit(ExitCodeOfNamed(status));
  };
  for (const char* name : {"no-such-user", "@no-such-group"}) {
    EXPECT_EXIT(ask(name),
                ::testing::ExitedWithCode(kExitFailed),
                "access.admin: cannot look up 'no-such-.*: Too many open files; look at");
  }
}

TEST(AccessTest, TheKernelTellsWhoIsOnAUnixSocket) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const Peer peer = ReadPeer(pair[0]);
  EXPECT_TRUE(peer.known);
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_THAT(peer.groups, ::testing::Contains(uint32_t{::getegid()}));
  ::close(pair[0]);
  ::close(pair[1]);
  EXPECT_FALSE(ReadPeer(-1).known);
}

TEST(AccessTest, WhoComesOverTcpIsKnownByItsAddressAlone) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, any, size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, any, &size), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, any, size), 0);
  const Peer peer = ReadPeer(client);
  EXPECT_FALSE(peer.known);
  EXPECT_EQ(peer.address, "127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  ::close(client);
  ::close(listener);
}

TEST(AccessTest, ThoseWhoAreTurnedAwayAreToldOnceAMinute) {
  TurnedAway clients;
  const auto told = [&](int64_t second) {
    const bool is_to_be = clients.IsToBeTold(BootFromMillis(1000 * second));
    if (is_to_be) {
      clients.untold = 0;
    }
    return is_to_be;
  };
  EXPECT_FALSE(told(0));
  clients.Note({.known = true, .uid = 4711}, "403");
  EXPECT_EQ(clients.last_peer, "uid:4711");
  EXPECT_TRUE(told(1));
  clients.Note({}, "401");
  EXPECT_FALSE(told(60));
  EXPECT_TRUE(told(61));
  EXPECT_FALSE(told(200));
}

// In a child, whose groups nobody minds.
TEST(AccessTest, AUserMayBeInManyGroups) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root may choose its groups";
  }
  std::vector<gid_t> groups;
  for (gid_t group = 1001; group <= 1100; ++group) {
    groups.push_back(group);
  }
  const auto ask = [&groups] {
    int pair[2];
    if (::setgroups(groups.size(), groups.data()) != 0 ||
        ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
      std::_Exit(1);
    }
    std::vector<uint32_t> expected(groups.begin(), groups.end());
    expected.push_back(::getegid());
    std::_Exit(ReadPeer(pair[0]).groups == expected ? 0 : 2);
  };
  EXPECT_EXIT(ask(), ::testing::ExitedWithCode(0), "");
  groups.resize(2);
  EXPECT_EXIT(ask(), ::testing::ExitedWithCode(0), "");
}

// Nobody writes into it; a reload would wait for that.
TEST_F(TokenFileTest, APipeIsNotWaitedFor) {
  const std::string path = dir_.Sub("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Access::Create({.token_file = path}).status().message(),
              HasSubstr(path + ": it is no regular file"));
}

TEST_F(TokenFileTest, ATokenIsItsRole) {
  const Access access =
      Make({.token_file = Write("# who\nread " + kToken + "\n\nadmin " + kToken + "x\n")});
  EXPECT_TRUE(access.has_tokens());
  EXPECT_EQ(access.CallerOfToken(kToken)->role, Role::kRead);
  EXPECT_EQ(access.CallerOfToken(kToken + "x")->role, Role::kAdmin);
  EXPECT_FALSE(access.CallerOfToken(kToken + "y").has_value());
  EXPECT_FALSE(access.CallerOfToken(kToken.substr(1)).has_value());
  EXPECT_FALSE(access.CallerOfToken("").has_value());
}

TEST_F(TokenFileTest, ATokenHasAUserByItsNameOrItsRole) {
  const Access access =
      Make({.token_file = Write("enqueue " + kToken + " Shop_1.b-c\nenqueue " + kToken + "x\n")});
  EXPECT_EQ(access.CallerOfToken(kToken)->user, "token:Shop_1.b-c");
  EXPECT_EQ(access.CallerOfToken(kToken + "x")->user, "token:enqueue");
  EXPECT_EQ(Access::UserOf({.known = true, .uid = 1000, .groups = {}}), "uid:1000");
  EXPECT_EQ(Access::UserOf({}), "tcp");
  EXPECT_THAT(ErrorOf("enqueue " + kToken + " a/b\n"), HasSubstr("the name behind a token"));
  EXPECT_THAT(ErrorOf("enqueue " + kToken + " a b\n"), HasSubstr("the name behind a token"));
}

TEST_F(TokenFileTest, ATokenHas16To512Characters) {
  for (const size_t bytes : {16U, 512U}) {
    const std::string token(bytes, 'a');
    EXPECT_TRUE(Make({.token_file = Write("read " + token)}).CallerOfToken(token)) << bytes;
  }
  for (const size_t bytes : {15U, 513U}) {
    EXPECT_THAT(ErrorOf("read " + std::string(bytes, 'a')), HasSubstr("16 to 512")) << bytes;
  }
}

TEST_F(TokenFileTest, ATokenThatStandsTwiceIsRefused) {
  const std::string error =
      ErrorOf("read " + kToken + "\nread " + kToken + "x\nadmin " + kToken + " ops\n");
  EXPECT_THAT(error, HasSubstr("tokens:3: this token stands in a line before"));
  EXPECT_THAT(error, Not(HasSubstr(kToken)));
}

TEST_F(TokenFileTest, AReloadTakesTheTokensOfTheFileOrNone) {
  Access access = Make({.token_file = Write("read " + kToken + "\n")});
  Write("enqueue " + kToken + "y\n");
  StatusOr<Access::Tokens> tokens = access.ReadTokens();
  ASSERT_TRUE(tokens.ok());
  access.SetTokens(std::move(*tokens));
  EXPECT_FALSE(access.CallerOfToken(kToken).has_value());
  EXPECT_EQ(access.CallerOfToken(kToken + "y")->role, Role::kEnqueue);
  for (const std::string& broken :
       std::vector<std::string>{"", "enqueue short\n", "admin " + kToken + "\nwrong\n"}) {
    Write(broken);
    EXPECT_FALSE(access.ReadTokens().ok());
    EXPECT_EQ(access.CallerOfToken(kToken + "y")->role, Role::kEnqueue);
    EXPECT_FALSE(access.CallerOfToken(kToken).has_value());
  }
}

TEST_F(TokenFileTest, ATokenThatDiffersAnywhereIsAnother) {
  for (size_t bytes = 16; bytes <= 40; ++bytes) {
    const std::string token(bytes, 'k');
    const Access access = Make({.token_file = Write("read " + token + "\n")});
    EXPECT_TRUE(access.CallerOfToken(token).has_value());
    EXPECT_FALSE(access.CallerOfToken("").has_value());
    EXPECT_FALSE(access.CallerOfToken(token + "k").has_value()) << bytes;
    EXPECT_FALSE(access.CallerOfToken(token.substr(1)).has_value()) << bytes;
    for (size_t at = 0; at < bytes; ++at) {
      std::string other = token;
      other[at] = 'l';
      EXPECT_FALSE(access.CallerOfToken(other).has_value()) << bytes << " " << at;
    }
  }
}

TEST_F(TokenFileTest, AFileThatEverybodyCanReadIsRefused) {
  EXPECT_THAT(ErrorOf("read " + kToken, 0644), HasSubstr("chmod o-rw"));
}

TEST_F(TokenFileTest, ErrorsNameTheLineAndNeverTheToken) {
  const std::string bad_role = ErrorOf("read " + kToken + "\nreed " + kToken + "\n");
  EXPECT_THAT(bad_role, HasSubstr("tokens:2: "));
  EXPECT_THAT(bad_role, Not(HasSubstr(kToken)));
  EXPECT_THAT(ErrorOf("admin secret\n"), Not(HasSubstr("secret")));
  EXPECT_THAT(ErrorOf("# nothing\n"), HasSubstr("no token"));
  EXPECT_FALSE(Access::Create({.token_file = dir_.Sub("absent")}).ok());
}

}  // namespace
}  // namespace delayd

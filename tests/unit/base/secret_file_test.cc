#include "base/secret_file.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SecretFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    std::string path = dir_.Sub("secret");
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  static StatusOr<std::string> Read(const std::string& path, SecretOf of) {
    return ReadSecretFile(
        {.of = of, .what = "the key", .path = path, .cure = "name one", .renew = "make another"});
  }

  // The same to both.
  static void ExpectRefused(const std::string& path, StatusCode code, const std::string& words) {
    for (const SecretOf of : {SecretOf::kDaemon, SecretOf::kUser}) {
      const Status status = Read(path, of).status();
      EXPECT_EQ(status.code(), code);
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("the key " + path), HasSubstr(words), Not(HasSubstr("hunter2"))));
    }
  }

  test::TempDir dir_;
};

TEST_F(SecretFileTest, WhatStandsInItIsReadAsItIs) {
  const std::string text(" hunter2\r\n\0\n", 12);
  const std::string path = Write(text);
  const std::string link = dir_.Sub("link");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  for (const std::string& name : {path, link}) {
    EXPECT_EQ(Read(name, SecretOf::kDaemon).value(), text);
    EXPECT_EQ(Read(name, SecretOf::kUser).value(), text);
  }
  EXPECT_EQ(Read(Write(""), SecretOf::kDaemon).value(), "");
}

TEST_F(SecretFileTest, WhatEverybodyMayReadOrWriteIsRefused) {
  const std::string link = dir_.Sub("link");
  ASSERT_EQ(::symlink(dir_.Sub("secret").c_str(), link.c_str()), 0);
  for (const mode_t mode : {0644U, 0604U, 0602U}) {
    const std::string path = Write("hunter2", mode);
    ExpectRefused(
        path, StatusCode::kPermissionDenied, "run 'chmod o-rw " + path + "' and make another");
    ExpectRefused(link, StatusCode::kPermissionDenied, "by everybody");
  }
}

// Root is in no need of its group's rights, and the package's daemon is not root.
TEST_F(SecretFileTest, TheDaemonsGroupIsThatOfItsSocketsUsers) {
  const std::string path = Write("hunter2", 0640);
  EXPECT_TRUE(Read(path, SecretOf::kUser).ok());
  const Status status = Read(path, SecretOf::kDaemon).status();
  if (::geteuid() == 0) {
    EXPECT_TRUE(status.ok());
  } else {
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("chmod 400 " + path + "' and make another"));
  }
}

TEST_F(SecretFileTest, WhatIsNoFileIsToldAsThat) {
  // Nobody is told to change the mode of /dev/null.
  for (const std::string& path : {std::string("/dev/null"), dir_.path()}) {
    ExpectRefused(path, StatusCode::kInvalidArgument, "file; name one");
  }
  ExpectRefused(dir_.Sub("none"),
                StatusCode::kInvalidArgument,
                "No such file or directory; check the name and rights of the file");
  const std::string loop = dir_.Sub("loop");
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  ExpectRefused(loop, StatusCode::kInvalidArgument, "symbolic links; check the name");
}

TEST_F(SecretFileTest, ADiskThatFailsIsTold) {
  // Its first page is nobody's: read(2) says EIO.
  ExpectRefused("/proc/self/mem",
                StatusCode::kInvalidArgument,
                "Input/output error; look at the file and its disk");
}

TEST_F(SecretFileTest, ItIsReadUpTo64KiB) {
  EXPECT_EQ(Read(Write(std::string(65536, '#')), SecretOf::kUser).value().size(), 65536U);
  ExpectRefused(Write(std::string(65537, '#')),
                StatusCode::kInvalidArgument,
                "it is larger than 64 KiB; name one");
}

TEST_F(SecretFileTest, APipeIsReadForUsersAndNotWaitedForByTheDaemon) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd out(ends[0]);
  {
    const UniqueFd in(ends[1]);
    ASSERT_EQ(::write(in.get(), "hunter2\n", 8), 8);
  }
  EXPECT_EQ(Read("/dev/fd/" + std::to_string(out.get()), SecretOf::kUser).value(), "hunter2\n");
  const std::string path = dir_.Sub("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Read(path, SecretOf::kDaemon).status().message(),
              HasSubstr(path + ": it is no regular file; name one"));
}

}  // namespace
}  // namespace delayd

#include "cli/webhook_signature.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

TEST(WebhookSignatureTest, IsThatOfTheStandardsExample) {
  const auto keys = ParseWebhookSecrets(kSecret);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(
      SignWebhook(*keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(WebhookSignatureTest, EachSecretSigns) {
  const auto keys = ParseWebhookSecrets("# new\nwhsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n\n" +
                                        std::string(kSecret) + "\n");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_THAT(*keys, SizeIs(2));
  EXPECT_THAT(SignWebhook(*keys, "a", 1, "b"), HasSubstr("= v1,"));
}

TEST(WebhookSignatureTest, ABadSecretIsNamedByItsLineAndNotShown) {
  for (const char* text : {"whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA", ""}) {
    const auto keys = ParseWebhookSecrets(text);
    EXPECT_EQ(keys.status().reason(), "invalid_secret") << text;
    EXPECT_THAT(keys.status().message(), HasSubstr("openssl rand -base64 32"));
  }
  const auto keys = ParseWebhookSecrets(std::string(kSecret) + "\nwhsec_hunter2");
  EXPECT_THAT(keys.status().message(), HasSubstr("line 2"));
  EXPECT_THAT(keys.status().message(), Not(HasSubstr("hunter2")));
}

TEST(WebhookSignatureTest, AFileThatEveryoneMayReadIsRefused) {
  const delayd::test::TempDir dir;
  const std::string path = dir.Sub("secret");
  std::ofstream(path) << kSecret << "\n";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(ReadWebhookSecrets(path).status().code(), StatusCode::kPermissionDenied);
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_TRUE(ReadWebhookSecrets(path).ok());
  const Status missing = ReadWebhookSecrets(dir.Sub("none")).status();
  EXPECT_EQ(missing.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(missing.message(), ::testing::HasSubstr("check the name and rights"));
  const Status device = ReadWebhookSecrets("/dev/null").status();
  EXPECT_EQ(device.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(device.message(), ::testing::HasSubstr("name one that holds the secrets"));
}

TEST(WebhookSignatureTest, WhatCannotBeReadIsRefusedAndSaysWhy) {
  const delayd::test::TempDir dir;
  const std::string directory = dir.Sub("secrets");
  ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  EXPECT_THAT(ReadWebhookSecrets(directory).status().message(), HasSubstr("it is no file"));
  // Its first page is nobody's: read(2) says EIO, as with a failing disk.
  EXPECT_THAT(ReadWebhookSecrets("/proc/self/mem").status().message(),
              HasSubstr("Input/output error; look at the file and its disk"));
  const std::string large = dir.Sub("large");
  std::ofstream(large) << std::string(65537, '#');
  ASSERT_EQ(chmod(large.c_str(), 0600), 0);
  EXPECT_THAT(ReadWebhookSecrets(large).status().message(), HasSubstr("larger than 64 KiB"));
}

}  // namespace
}  // namespace delayd::cli
